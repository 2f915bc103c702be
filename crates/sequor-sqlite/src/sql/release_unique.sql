-- Lets go of ? = [[tenant, scope, value], …]: all releases of a batch come before its claims.
-- IN, so that every value is one descent.
DELETE FROM main.unique_keys
WHERE (tenant_id, scope, value) IN (
    SELECT unhex(value ->> 0), value ->> 1, value ->> 2 FROM jsonb_each(?)
);
