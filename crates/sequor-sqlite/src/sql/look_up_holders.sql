-- Who holds each of ? = [[tenant, scope, value], …], with the place in ?. CROSS, so that the
-- list drives.
SELECT wanted.key, held.aggregate, held.aggregate_id
FROM jsonb_each(?) AS wanted
CROSS JOIN main.unique_keys AS held
    ON held.tenant_id = unhex(wanted.value ->> 0)
    AND held.scope = wanted.value ->> 1
    AND held.value = wanted.value ->> 2;
