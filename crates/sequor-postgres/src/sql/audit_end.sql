-- Nothing was written.
ROLLBACK;
