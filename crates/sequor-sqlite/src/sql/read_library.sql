-- Which release of SQLite this program was built with.
SELECT sqlite_version();
