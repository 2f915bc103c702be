-- What every account owes: the read model of `projection.rs`, written in the transaction of the
-- command that changes it. Run by the owner of the tables at every start; it only ever creates what
-- is missing, and a second process that starts at the same time waits.
SELECT pg_advisory_xact_lock(hashtextextended('billing:tables', 0));

CREATE TABLE IF NOT EXISTS balances (
    tenant_id uuid NOT NULL,
    -- Sorted byte for byte, whatever the database's language is.
    account text COLLATE "C" NOT NULL,
    owner text NOT NULL,
    limit_cents bigint NOT NULL,
    balance_cents bigint NOT NULL DEFAULT 0,
    charges bigint NOT NULL DEFAULT 0,
    -- Of the account's stream: how far this row has come.
    version bigint NOT NULL,
    PRIMARY KEY (tenant_id, account)
);

-- The projection sees the rows of the tenant that its command is for, and no others.
SELECT sequor.wall('balances');
