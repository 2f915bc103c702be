-- One command on one stream: see `sequor.commit_one` in migrations/postgres/0006_commit_one.sql.
SELECT
    false, "position", name, command_id, known_actor, recorded_at, state, fence, known_output,
    streams, known_fingerprint, lease_until, verdicts, positions, place, stream, actual, scope,
    value, holder_aggregate, holder_id
FROM sequor.commit_one(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22
);
