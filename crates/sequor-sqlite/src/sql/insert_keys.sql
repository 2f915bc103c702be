-- The idempotency records of a batch, ? = [[tenant, key, command], …]. A key that exists fails
-- (1555), and with it the transaction: never DO NOTHING, which would let the rest become true.
INSERT OR ROLLBACK INTO main.idempotency_keys (tenant_id, key, command)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2 FROM jsonb_each(?);
