-- Who holds each of ?3 = [[tenant, scope, value], …], with the place in ?3. CROSS, so that the
-- list drives.
SELECT wanted.key, held.aggregate, held.aggregate_id
FROM json_each(?3) AS wanted
CROSS JOIN unique_keys AS held
    ON held.tenant_id = unhex(wanted.value ->> 0)
    AND held.scope = wanted.value ->> 1
    AND held.value = wanted.value ->> 2;
