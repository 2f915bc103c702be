-- Versions that do not follow the one before in their stream; 0 comes before the first.
SELECT count(*) OVER (), tenant_id, aggregate, aggregate_id, version_before, version
FROM (
    SELECT
        tenant_id, aggregate, aggregate_id, version,
        lag(version, 1, 0::bigint) OVER (
            PARTITION BY tenant_id, aggregate, aggregate_id ORDER BY version
        ) AS version_before
    FROM sequor.events
) AS event
WHERE version <> version_before + 1
ORDER BY tenant_id, aggregate, aggregate_id, version
LIMIT $1;
