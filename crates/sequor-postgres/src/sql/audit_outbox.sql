-- Messages whose command their tenant has not got.
SELECT count(*) OVER (), message.tenant_id, message.message_id, message.command_id
FROM sequor.outbox AS message
WHERE NOT EXISTS (
    SELECT FROM sequor.commands AS command
    WHERE command.tenant_id = message.tenant_id AND command.command_id = message.command_id
)
ORDER BY message.tenant_id, message.message_id
LIMIT $1;
