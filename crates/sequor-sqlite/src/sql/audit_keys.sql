-- Keys whose command their tenant has not got, or which are another command's. A reservation
-- precedes its command.
SELECT
    count(*) OVER (), key.tenant_id, key.key, key.command, command.tenant_id IS key.tenant_id,
    command.command_id, command.key
FROM main.idempotency_keys AS key
LEFT JOIN main.commands AS command ON command.number = key.command
WHERE key.state = 0
    AND (command.tenant_id IS NOT key.tenant_id OR command.key IS NOT key.key)
ORDER BY key.tenant_id, key.key
LIMIT ?1;
