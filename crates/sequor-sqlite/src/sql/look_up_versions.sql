-- The version of each of ? = [[tenant, aggregate, id], …], with the place in ?. CROSS, so that
-- the list drives.
SELECT wanted.key, stream.version
FROM jsonb_each(?) AS wanted
CROSS JOIN main.streams AS stream
    ON stream.tenant_id = unhex(wanted.value ->> 0)
    AND stream.aggregate = wanted.value ->> 1
    AND stream.aggregate_id = wanted.value ->> 2;
