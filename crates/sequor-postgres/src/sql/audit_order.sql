-- Events whose position is not above that of the event before in their stream.
SELECT count(*) OVER (), tenant_id, aggregate, aggregate_id, version, position, position_before
FROM (
    SELECT
        tenant_id, aggregate, aggregate_id, version, position,
        lag(position) OVER (
            PARTITION BY tenant_id, aggregate, aggregate_id ORDER BY version
        ) AS position_before
    FROM sequor.events
) AS event
WHERE position <= position_before
ORDER BY tenant_id, aggregate, aggregate_id, version
LIMIT $1;
