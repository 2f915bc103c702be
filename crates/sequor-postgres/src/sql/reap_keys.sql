-- Moves at most $1 keys to the archive; answers how many.
SELECT sequor.reap_keys($1);
