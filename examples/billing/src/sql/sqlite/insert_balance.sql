INSERT INTO balances (tenant_id, account, owner, limit_cents, version)
VALUES (?1, ?2, ?3, ?4, ?5);
