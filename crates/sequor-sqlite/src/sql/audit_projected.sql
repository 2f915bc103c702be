-- Streams of which a projection has taken in something else than what lies up to its checkpoint; of
-- a parked one it has taken in less. Both sides are grouped, since SQLite would compare each with
-- each where it joins them fully.
SELECT
    count(*) OVER (), projection, projection_version, tenant_id, aggregate, aggregate_id,
    max(taken), coalesce(max(wanted), 0)
FROM (
    SELECT
        projection, projection_version, tenant_id, aggregate, aggregate_id, version AS taken,
        NULL AS wanted, parked_since IS NOT NULL AS is_parked
    FROM main.projected_streams
    UNION ALL
    SELECT
        one.projection, one.projection_version, event.tenant_id, event.aggregate,
        event.aggregate_id, NULL, count(*), 0
    FROM main.checkpoints AS one
    CROSS JOIN main.events AS event ON event.position <= one.position
    GROUP BY
        one.projection, one.projection_version, event.tenant_id, event.aggregate,
        event.aggregate_id
)
GROUP BY projection, projection_version, tenant_id, aggregate, aggregate_id
HAVING CASE max(is_parked)
    WHEN 1 THEN coalesce(max(taken), 0) >= coalesce(max(wanted), 0)
    ELSE max(taken) IS NOT max(wanted)
END
ORDER BY projection, projection_version, tenant_id, aggregate, aggregate_id
LIMIT ?1;
