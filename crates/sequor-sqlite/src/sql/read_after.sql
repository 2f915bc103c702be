-- At most ?2 events after position ?1, by rowid: there is one writer, so every visible position
-- lies at or below the mark. The first columns are those of `history_events.sql`. LEFT, so that an
-- event whose command is gone shows as damage and is not skipped.
SELECT
    1,
    event.position, event.name, command.command_id, command.actor, command.recorded_at,
    event.version, event.schema_version, event.payload, command.key, command.correlation_id,
    command.causation_id,
    event.tenant_id, event.aggregate, event.aggregate_id
FROM main.events AS event
LEFT JOIN main.commands AS command ON command.number = event.command
WHERE event.position > ?1
ORDER BY event.position
LIMIT ?2;
