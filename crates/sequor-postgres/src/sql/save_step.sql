-- Moves release $2 of projection $1 in partition $3 to position $5, within transaction $4, and the
-- streams ($6, $7, $8) to versions $9, parked for $10 after $11 tries since $12.
SELECT sequor.save_step($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
