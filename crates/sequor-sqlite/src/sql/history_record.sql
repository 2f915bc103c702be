-- The record under a key (?1 tenant, ?2 key): one descent into the narrow key table, one into the
-- commands by number. LEFT, so that a key whose command is gone shows as damage, not as unknown.
SELECT
    0,
    command.position, command.name, command.command_id, command.actor, command.recorded_at,
    key.state, key.fence, command.output, command.streams, command.fingerprint, key.lease_until
FROM main.idempotency_keys AS key
LEFT JOIN main.commands AS command ON command.number = key.command
WHERE key.tenant_id = ?1 AND key.key = ?2;
