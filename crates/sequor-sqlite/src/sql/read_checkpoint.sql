-- How far release ?2 of projection ?1 has come in partition ?3.
SELECT position FROM main.checkpoints
WHERE projection = ?1 AND projection_version = ?2 AND partition = ?3;
