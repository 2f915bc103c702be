-- Checkpoints that are ahead of the log.
SELECT
    count(*) OVER (), projection, projection_version, partition, position,
    coalesce((SELECT max(position) FROM main.events), 0) AS last
FROM main.checkpoints
WHERE position > last
ORDER BY projection, projection_version, partition
LIMIT ?1;
