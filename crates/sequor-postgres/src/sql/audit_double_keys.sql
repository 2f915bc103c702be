-- Keys that are archived more than once, or archived and live.
SELECT count(*) OVER (), archive.tenant_id, archive.key, count(key.key), count(*)
FROM sequor.idempotency_keys_archive AS archive
LEFT JOIN sequor.idempotency_keys AS key
    ON key.tenant_id = archive.tenant_id AND key.key = archive.key
GROUP BY archive.tenant_id, archive.key
HAVING count(*) + count(key.key) > 1
ORDER BY archive.tenant_id, archive.key
LIMIT $1;
