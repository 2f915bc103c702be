-- Claims key $3 of tenant $2, or answers with its record; waits $1 milliseconds for a rival.
SELECT
    false, "position", name, command_id, actor, recorded_at, state, fence, output, streams,
    fingerprint, lease_until
FROM sequor.claim($1, $2, $3);
