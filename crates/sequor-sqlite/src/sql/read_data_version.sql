-- Changes whenever another connection has changed the file. Read before everything that a batch
-- is judged by, and compared under the write lock by `check_unchanged.sql`.
SELECT data_version FROM pragma_data_version;
