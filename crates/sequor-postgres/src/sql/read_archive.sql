-- At most $4 keys of month $1, after key $3 of tenant $2.
SELECT tenant_id, key, command_id, claimed_at, archived_at
FROM sequor.read_archive($1, $2, $3, $4);
