-- What each of ? = [[tenant, aggregate, id], …] holds, with the place in ?, by the index of
-- holders. CROSS, so that the list drives.
SELECT wanted.key, held.scope, held.value
FROM jsonb_each(?) AS wanted
CROSS JOIN main.unique_keys AS held
    ON held.tenant_id = unhex(wanted.value ->> 0)
    AND held.aggregate = wanted.value ->> 1
    AND held.aggregate_id = wanted.value ->> 2;
