-- Moves release ?2 of projection ?1 in partition ?3 to position ?4.
INSERT INTO main.checkpoints (projection, projection_version, partition, position)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (projection, projection_version, partition) DO UPDATE SET position = excluded.position;
