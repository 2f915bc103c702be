-- The version of each of ?2 = [[tenant, aggregate, id], …], with the place in ?2. CROSS, so that
-- the list drives.
SELECT wanted.key, stream.version
FROM json_each(?2) AS wanted
CROSS JOIN streams AS stream
    ON stream.tenant_id = unhex(wanted.value ->> 0)
    AND stream.aggregate = wanted.value ->> 1
    AND stream.aggregate_id = wanted.value ->> 2;
