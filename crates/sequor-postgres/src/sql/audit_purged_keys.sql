-- The commands whose key is in no table and may have been purged, against the keys of the months
-- that were dropped: as many of them, with the same digest.
SELECT 1::bigint, missing.commands, dropped.keys
FROM (
    SELECT
        count(*) AS commands,
        coalesce(bit_xor(
            sequor.key_digest(command.tenant_id, command.command_id, command.key)
        ), 0) AS digest
    FROM sequor.commands AS command
    JOIN sequor.retention AS retention
        ON retention.id = 1 AND retention.archived_to IS NOT NULL
        AND NOT sequor.is_young(command.key, retention.archived_to)
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
) AS missing
CROSS JOIN (
    SELECT coalesce(sum(keys), 0)::bigint AS keys, coalesce(bit_xor(digest), 0) AS digest
    FROM sequor.dropped_months
) AS dropped
WHERE dropped.keys > 0
    AND (missing.commands <> dropped.keys OR missing.digest <> dropped.digest)
    AND $1 > 0;
