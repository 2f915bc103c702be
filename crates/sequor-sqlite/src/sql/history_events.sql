-- The events of a stream (?1 tenant, ?3 aggregate, ?4 id) after a version (?5), in order, by the
-- unique index. LEFT, so that an event whose command is gone shows as damage, not as a hole.
SELECT
    1,
    event.position, event.name, command.command_id, command.actor, command.recorded_at,
    event.version, event.schema_version, event.payload, command.key, command.correlation_id,
    command.causation_id
FROM main.events AS event
LEFT JOIN main.commands AS command ON command.number = event.command
WHERE event.tenant_id = ?1 AND event.aggregate = ?3 AND event.aggregate_id = ?4
    AND event.version > ?5
ORDER BY event.version;
