-- The commands of a batch, ? = one array of columns each. A number that exists fails (1555).
INSERT OR ROLLBACK INTO main.commands (
    number, command_id, tenant_id, key, name, payload, fingerprint, output, actor, correlation_id,
    causation_id, recorded_at, streams, position
)
SELECT
    value ->> 0, unhex(value ->> 1), unhex(value ->> 2), value ->> 3, value ->> 4, value ->> 5,
    unhex(value ->> 6), value ->> 7, value ->> 8, unhex(value ->> 9), unhex(value ->> 10),
    value ->> 11, value ->> 12, value ->> 13
FROM jsonb_each(?);
