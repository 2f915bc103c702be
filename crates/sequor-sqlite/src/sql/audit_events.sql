-- Events whose command their tenant has not got.
SELECT
    count(*) OVER (), event.tenant_id, event.aggregate, event.aggregate_id, event.version,
    event.position, event.command
FROM main.events AS event
LEFT JOIN main.commands AS command ON command.number = event.command
WHERE command.tenant_id IS NOT event.tenant_id
ORDER BY event.position
LIMIT ?1;
