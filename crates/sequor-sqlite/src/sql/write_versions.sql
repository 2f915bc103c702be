-- The versions after a batch, ? = [[tenant, aggregate, id, version], …], each stream once. That
-- nobody has moved them is known from `check_unchanged.sql` and from the unique versions of
-- `insert_events.sql`. An upsert, because UPDATE … FROM json_each scans the whole table.
INSERT OR ROLLBACK INTO main.streams (tenant_id, aggregate, aggregate_id, version)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(?)
WHERE true
ON CONFLICT (tenant_id, aggregate, aggregate_id) DO UPDATE SET version = excluded.version;
