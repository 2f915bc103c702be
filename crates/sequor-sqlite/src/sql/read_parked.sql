-- At most ?3 parked streams of release ?2 of projection ?1, those of longest standing first.
SELECT
    tenant_id, aggregate, aggregate_id, version, parked_reason, parked_attempts, parked_since,
    partition
FROM main.projected_streams
WHERE projection = ?1 AND projection_version = ?2 AND parked_since IS NOT NULL
ORDER BY parked_since
LIMIT ?3;
