-- Whether the table is there.
SELECT to_regclass('balances') IS NOT NULL;
