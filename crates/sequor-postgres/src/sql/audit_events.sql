-- Events whose command their tenant has not got.
SELECT
    count(*) OVER (), event.tenant_id, event.aggregate, event.aggregate_id, event.version,
    event.position, event.command_id
FROM sequor.events AS event
WHERE NOT EXISTS (
    SELECT FROM sequor.commands AS command
    WHERE command.tenant_id = event.tenant_id AND command.command_id = event.command_id
)
ORDER BY event.position
LIMIT $1;
