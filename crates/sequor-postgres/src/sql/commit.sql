-- A batch: see `sequor.commit` in migrations/postgres/0004_commit.sql. Arrays of built-in types, so
-- that the driver asks the server for no types.
SELECT
    false, "position", name, command_id, actor, recorded_at, state, fence, output, streams,
    fingerprint, lease_until, verdicts, positions, place, stream, actual, scope, value,
    holder_aggregate, holder_id
FROM sequor.commit(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40,
    $41, $42, $43
);
