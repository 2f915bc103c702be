-- The record under a key and the events of a stream: both arms have the columns of
-- `history_record.sql` and `history_events.sql`. One statement, because one statement is one
-- snapshot and one trip. Where the key is known its record answers, and no event is read.
SELECT
    0,
    command.position, command.name, command.command_id, command.actor, command.recorded_at,
    key.state, key.fence, command.output, command.streams, command.fingerprint, key.lease_until
FROM main.idempotency_keys AS key
LEFT JOIN main.commands AS command ON command.number = key.command
WHERE key.tenant_id = ?1 AND key.key = ?2
UNION ALL
SELECT * FROM (
    SELECT
        1,
        event.position, event.name, command.command_id, command.actor, command.recorded_at,
        event.version, event.schema_version, event.payload, command.key, command.correlation_id,
        command.causation_id
    FROM main.events AS event
    LEFT JOIN main.commands AS command ON command.number = event.command
    WHERE event.tenant_id = ?1 AND event.aggregate = ?3 AND event.aggregate_id = ?4
        AND event.version > ?5
        AND NOT EXISTS (
            SELECT 1 FROM main.idempotency_keys AS known
            WHERE known.tenant_id = ?1 AND known.key = ?2
        )
    ORDER BY event.version
);
