-- Streams whose stored version is not that of their last event.
SELECT
    count(*) OVER (), tenant_id, aggregate, aggregate_id, stream.version, written.version
FROM sequor.streams AS stream
FULL JOIN (
    SELECT tenant_id, aggregate, aggregate_id, max(version) AS version
    FROM sequor.events
    GROUP BY tenant_id, aggregate, aggregate_id
) AS written USING (tenant_id, aggregate, aggregate_id)
WHERE stream.version IS DISTINCT FROM written.version
ORDER BY tenant_id, aggregate, aggregate_id
LIMIT $1;
