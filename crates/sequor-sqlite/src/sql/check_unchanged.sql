-- Fails (1299, no column of `streams` may be NULL), and with it the transaction, when another
-- process has changed the file since the batch was judged: ? is the data version from then. So
-- the whole judgement holds under the write lock, though it was made before.
INSERT OR ROLLBACK INTO main.streams (tenant_id, aggregate, aggregate_id, version)
SELECT NULL, NULL, NULL, NULL FROM pragma_data_version WHERE data_version <> ?;
