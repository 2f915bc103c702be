-- How far release ?2 of projection ?1 has come, in each partition.
SELECT partition, position FROM main.checkpoints
WHERE projection = ?1 AND projection_version = ?2
ORDER BY partition;
