-- The transactions that hold the lock of partition $1 now.
SELECT sequor.holders($1);
