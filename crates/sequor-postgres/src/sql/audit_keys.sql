-- Keys, live and archived, whose command their tenant has not got, or which are another command's.
-- A reservation precedes its command; what is claimed only is looked at elsewhere.
SELECT
    count(*) OVER (), key.tenant_id, key.key, key.is_archived, key.command_id,
    command.command_id IS NOT NULL, command.key
FROM (
    SELECT tenant_id, key, command_id, false AS is_archived
    FROM sequor.idempotency_keys
    WHERE state = 0 AND command_id <> '00000000-0000-0000-0000-000000000000'
    UNION ALL
    SELECT tenant_id, key, command_id, true FROM sequor.idempotency_keys_archive
) AS key
LEFT JOIN sequor.commands AS command
    ON command.tenant_id = key.tenant_id AND command.command_id = key.command_id
WHERE command.key IS DISTINCT FROM key.key
ORDER BY key.tenant_id, key.key
LIMIT $1;
