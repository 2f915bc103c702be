-- Waits at most $1 milliseconds for the checkpoint of release $3 of projection $2 in partition $4,
-- for the holder of term $5 or an operator: where it stands, and how the streams $6, $7, $8 stand.
SELECT place, position, transaction, version, parked_reason, parked_attempts, parked_since
FROM sequor.begin_step($1, $2, $3, $4, $5, $6, $7, $8);
