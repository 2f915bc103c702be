-- Commands whose position is not that of their last event.
SELECT count(*) OVER (), command.tenant_id, command.command_id, command.position, written.position
FROM main.commands AS command
LEFT JOIN (
    SELECT tenant_id, command, max(position) AS position
    FROM main.events
    GROUP BY tenant_id, command
) AS written ON written.command = command.number AND written.tenant_id = command.tenant_id
WHERE command.position IS NOT written.position
ORDER BY command.number
LIMIT ?1;
