-- How far release ?2 of projection ?1 has come in each of the streams ?3 = [[tenant, aggregate, id],
-- …], with the place in ?3. CROSS, so that the list drives.
SELECT wanted.key, one.version, one.parked_reason, one.parked_attempts, one.parked_since
FROM jsonb_each(?3) AS wanted
CROSS JOIN main.projected_streams AS one
    ON one.tenant_id = unhex(wanted.value ->> 0)
    AND one.projection = ?1
    AND one.projection_version = ?2
    AND one.aggregate = wanted.value ->> 1
    AND one.aggregate_id = wanted.value ->> 2;
