-- Where the checkpoint of release $2 of projection $1 in partition $3 stands, and the streams $4, $5,
-- $6.
SELECT place, position, transaction, version, parked_reason, parked_attempts, parked_since
FROM sequor.standing($1, $2, $3, $4, $5, $6);
