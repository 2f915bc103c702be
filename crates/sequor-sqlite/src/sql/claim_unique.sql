-- Holds ? = [[tenant, scope, value, aggregate, id], …]. A value that is held fails (1555).
INSERT OR ROLLBACK INTO main.unique_keys (tenant_id, scope, value, aggregate, aggregate_id)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM jsonb_each(?);
