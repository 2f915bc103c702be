-- Streams of which a projection has taken in something else than what lies up to its checkpoint; of
-- a parked one it has taken in less.
SELECT
    count(*) OVER (), projection, projection_version, tenant_id, aggregate, aggregate_id,
    taken.version, coalesce(wanted.version, 0)
FROM sequor.projected_streams AS taken
FULL JOIN (
    SELECT
        one.projection, one.projection_version, event.tenant_id, event.aggregate,
        event.aggregate_id, count(*) AS version
    FROM sequor.checkpoints AS one
    JOIN sequor.events AS event
        ON event.partition = one.partition AND event.position <= one.position
    GROUP BY
        one.projection, one.projection_version, event.tenant_id, event.aggregate,
        event.aggregate_id
) AS wanted USING (projection, projection_version, tenant_id, aggregate, aggregate_id)
WHERE CASE
    WHEN taken.parked_since IS NOT NULL THEN taken.version >= coalesce(wanted.version, 0)
    ELSE taken.version IS DISTINCT FROM wanted.version
END
ORDER BY projection, projection_version, tenant_id, aggregate, aggregate_id
LIMIT $1;
