-- Every balance, by tenant and account.
SELECT tenant_id, account, owner, limit_cents, balance_cents, charges, version
FROM balances
ORDER BY tenant_id, account;
