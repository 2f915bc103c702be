-- Streams that name another command than the event of their version does.
SELECT
    count(*) OVER (), stream.tenant_id, stream.aggregate, stream.aggregate_id, stream.version,
    stream.command_id, event.command_id
FROM sequor.streams AS stream
JOIN sequor.events AS event USING (tenant_id, aggregate, aggregate_id, version)
WHERE stream.command_id <> event.command_id
ORDER BY stream.tenant_id, stream.aggregate, stream.aggregate_id
LIMIT $1;
