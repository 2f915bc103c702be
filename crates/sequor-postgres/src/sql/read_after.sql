-- At most $4 events of partition $1 after position $2, up to the mark $3, in order.
SELECT
    true, "position", name, command_id, actor, recorded_at, NULL::smallint, NULL::bigint, payload,
    NULL::text, NULL::bytea, NULL::timestamptz, version, schema_version, key, correlation_id,
    causation_id, tenant_id, aggregate, aggregate_id
FROM sequor.read_log($1, $2, $3, $4);
