-- Keys that are claimed and of no command, though the transaction that claimed them has ended.
SELECT count(*) OVER (), tenant_id, key
FROM sequor.idempotency_keys
WHERE state = 0 AND command_id = '00000000-0000-0000-0000-000000000000'
ORDER BY tenant_id, key
LIMIT $1;
