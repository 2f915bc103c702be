-- What every account owes: the read model of `projection.rs`, written in the transaction of the
-- command that changes it. Run at every start; it only ever creates what is missing.
CREATE TABLE IF NOT EXISTS balances (
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    account TEXT NOT NULL,
    owner TEXT NOT NULL,
    limit_cents INTEGER NOT NULL,
    balance_cents INTEGER NOT NULL DEFAULT 0,
    charges INTEGER NOT NULL DEFAULT 0,
    -- Of the account's stream: how far this row has come.
    version INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, account)
) STRICT, WITHOUT ROWID;
