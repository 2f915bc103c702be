-- How release ?2 of projection ?1 stands now in streams of partition ?3, ?4 = [[tenant, aggregate,
-- id, version, reason, attempts, since], …], each stream once.
INSERT INTO main.projected_streams (
    tenant_id, projection, projection_version, aggregate, aggregate_id, partition, version,
    parked_reason, parked_attempts, parked_since
)
SELECT
    unhex(value ->> 0), ?1, ?2, value ->> 1, value ->> 2, ?3, value ->> 3, value ->> 4,
    value ->> 5, value ->> 6
FROM jsonb_each(?4)
WHERE true
ON CONFLICT (tenant_id, projection, projection_version, aggregate, aggregate_id) DO UPDATE SET
    version = excluded.version,
    parked_reason = excluded.parked_reason,
    parked_attempts = excluded.parked_attempts,
    parked_since = excluded.parked_since;
