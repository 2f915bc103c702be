-- Commands whose key is not there, or is another command's.
SELECT count(*) OVER (), command.tenant_id, command.key, command.command_id
FROM main.commands AS command
WHERE command.key IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM main.idempotency_keys AS key
        WHERE key.tenant_id = command.tenant_id AND key.key = command.key
            AND key.command = command.number
    )
ORDER BY command.number
LIMIT ?1;
