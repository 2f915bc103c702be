-- The version before must be the one that the row has: no event is missed, none counts twice.
UPDATE balances
SET balance_cents = balance_cents + $3, charges = charges + $4, version = $5
WHERE tenant_id = $1 AND account = $2 AND version = $5 - 1;
