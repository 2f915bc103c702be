-- How far release $2 of projection $1 has come, in each partition where it has taken something in.
SELECT partition, position FROM sequor.checkpoints
WHERE projection = $1 AND projection_version = $2 AND position > 0
ORDER BY partition;
