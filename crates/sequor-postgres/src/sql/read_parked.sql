-- At most $3 parked streams of release $2 of projection $1, those of longest standing first.
SELECT
    tenant_id, aggregate, aggregate_id, version, parked_reason, parked_attempts, parked_since,
    partition
FROM sequor.parked($1, $2, $3);
