-- Commands whose key is in no table, and in no month that was dropped for certain: none was, or the
-- key was made later than all that were archived.
SELECT count(*) OVER (), command.tenant_id, command.key, command.command_id
FROM sequor.commands AS command
LEFT JOIN sequor.retention AS retention ON retention.id = 1
WHERE command.key IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM sequor.idempotency_keys AS key
        WHERE key.tenant_id = command.tenant_id AND key.key = command.key
            AND key.command_id = command.command_id
    )
    AND NOT EXISTS (
        SELECT FROM sequor.idempotency_keys_archive AS archive
        WHERE archive.tenant_id = command.tenant_id AND archive.key = command.key
            AND archive.command_id = command.command_id
    )
    AND (
        retention.archived_to IS NULL
        OR sequor.is_young(command.key, retention.archived_to)
        OR NOT EXISTS (SELECT FROM sequor.dropped_months WHERE keys > 0)
    )
ORDER BY command.tenant_id, command.command_id
LIMIT $1;
