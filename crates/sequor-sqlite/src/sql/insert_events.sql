-- The events of a batch, ? = one array of columns each. A version that exists in its stream fails
-- (2067), and with it the transaction: never DO NOTHING, by which events vanish.
INSERT OR ROLLBACK INTO main.events (
    position, tenant_id, aggregate, aggregate_id, version, name, schema_version, payload, command
)
SELECT
    value ->> 0, unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, value ->> 8
FROM jsonb_each(?);
