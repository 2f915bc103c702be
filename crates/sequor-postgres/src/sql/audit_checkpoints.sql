-- Checkpoints that are ahead of the log.
SELECT
    count(*) OVER (), one.projection, one.projection_version, one.partition, one.position,
    last.position
FROM sequor.checkpoints AS one
CROSS JOIN LATERAL (
    SELECT coalesce(max(event.position), 0) AS position FROM sequor.events AS event
    WHERE event.partition = one.partition
) AS last
WHERE one.position > last.position
ORDER BY one.projection, one.projection_version, one.partition
LIMIT $1;
