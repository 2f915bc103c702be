-- The record under a key, or else the events of a stream after a version: one call, one snapshot.
SELECT
    is_event, "position", name, command_id, actor, recorded_at, state, fence, content, streams,
    fingerprint, lease_until, version, schema_version, key, correlation_id, causation_id
FROM sequor.history($1, $2, $3, $4, $5);
