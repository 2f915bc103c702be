-- Undoes the transaction.
ROLLBACK;
