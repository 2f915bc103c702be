-- What commands remember of their aggregates, against the events that they made; of those that they
-- only read, that it is no more than there ever was. What cannot be read counts as not remembered.
SELECT
    count(*) OVER (), command.tenant_id, one.aggregate, one.aggregate_id, command.command_id,
    one.listed, coalesce(one.written, stream.version, 0)
FROM (
    SELECT number, aggregate, aggregate_id, max(listed) AS listed, max(written) AS written
    FROM (
        SELECT
            command.number,
            CASE part.type WHEN 'array' THEN part.value ->> 0 END AS aggregate,
            CASE part.type WHEN 'array' THEN part.value ->> 1 END AS aggregate_id,
            CASE WHEN part.type = 'array' AND json_type(part.value, '$[2]') = 'integer'
                THEN part.value ->> 2
            END AS listed,
            NULL AS written
        FROM main.commands AS command
        CROSS JOIN json_each(iif(json_valid(command.streams), command.streams, '[]')) AS part
        UNION ALL
        SELECT event.command, event.aggregate, event.aggregate_id, NULL, event.version
        FROM main.events AS event
        CROSS JOIN main.commands AS command
            ON command.number = event.command AND command.tenant_id = event.tenant_id
    )
    GROUP BY number, aggregate, aggregate_id
) AS one
CROSS JOIN main.commands AS command ON command.number = one.number
LEFT JOIN main.streams AS stream
    ON stream.tenant_id = command.tenant_id AND stream.aggregate = one.aggregate
    AND stream.aggregate_id = one.aggregate_id
WHERE CASE
    WHEN one.written IS NULL THEN one.listed IS NULL OR one.listed > coalesce(stream.version, 0)
    ELSE one.listed IS NOT one.written
END
ORDER BY command.number, one.aggregate, one.aggregate_id
LIMIT ?1;
