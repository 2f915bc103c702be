-- What SQLite itself finds wrong with the file, its tables and their indexes; it stops after 100 lines.
SELECT count(*) OVER (), integrity_check
FROM pragma_integrity_check
WHERE integrity_check <> 'ok'
LIMIT ?1;
