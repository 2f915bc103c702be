-- Reservations that do not say whose they are, and until when.
SELECT count(*) OVER (), tenant_id, key
FROM sequor.idempotency_keys
WHERE state = 1 AND (lease_until IS NULL OR fence IS NULL)
ORDER BY tenant_id, key
LIMIT $1;
