-- Commands whose position is not that of their last event.
SELECT
    count(*) OVER (), command.tenant_id, command.command_id, command.position, written.position
FROM sequor.commands AS command
LEFT JOIN (
    SELECT tenant_id, command_id, max(position) AS position
    FROM sequor.events
    GROUP BY tenant_id, command_id
) AS written ON written.tenant_id = command.tenant_id AND written.command_id = command.command_id
WHERE command.position IS DISTINCT FROM written.position
ORDER BY command.tenant_id, command.command_id
LIMIT $1;
