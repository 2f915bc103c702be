-- The version of each of ? = [[tenant, aggregate, id, whether], …], with the place in ?, and where
-- `whether` is 1 the command that made it. CROSS, so that the list drives.
SELECT
    wanted.key, stream.version,
    CASE WHEN wanted.value ->> 3 THEN (
        SELECT command.command_id
        FROM main.events AS event
        CROSS JOIN main.commands AS command ON command.number = event.command
        WHERE event.tenant_id = stream.tenant_id
            AND event.aggregate = stream.aggregate
            AND event.aggregate_id = stream.aggregate_id
            AND event.version = stream.version
    ) END
FROM jsonb_each(?) AS wanted
CROSS JOIN main.streams AS stream
    ON stream.tenant_id = unhex(wanted.value ->> 0)
    AND stream.aggregate = wanted.value ->> 1
    AND stream.aggregate_id = wanted.value ->> 2;
