-- What is remembered under each of ? = [[tenant, key], …]: columns of `history_record.sql`, then
-- the place in ?. CROSS, so that the list drives and every key is one descent.
SELECT
    0,
    command.position, command.name, command.command_id, command.actor, command.recorded_at,
    key.state, key.fence, command.output, command.streams, command.fingerprint, key.lease_until,
    wanted.key
FROM jsonb_each(?) AS wanted
CROSS JOIN main.idempotency_keys AS key
    ON key.tenant_id = unhex(wanted.value ->> 0) AND key.key = wanted.value ->> 1
LEFT JOIN main.commands AS command ON command.number = key.command;
