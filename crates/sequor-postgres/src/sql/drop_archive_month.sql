-- Drops month $1, if it is over and holds just $2 keys with digest $3.
SELECT sequor.drop_archive_month($1, $2, $3);
