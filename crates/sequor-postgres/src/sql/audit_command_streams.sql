-- What commands remember of their aggregates, against the events that they made; of those that they
-- only read, that it is no more than there ever was. What cannot be read counts as not remembered,
-- and so does what is no list.
SELECT
    count(*) OVER (), tenant_id, aggregate, aggregate_id, command_id, listed.version,
    coalesce(written.version, stream.version, 0)
FROM (
    SELECT
        command.tenant_id, command.command_id, one.value ->> 0 AS aggregate,
        one.value ->> 1 AS aggregate_id,
        CASE WHEN one.value ->> 2 ~ '^[0-9]{1,18}$' THEN (one.value ->> 2)::bigint END AS version
    FROM sequor.commands AS command
    CROSS JOIN json_array_elements(
        CASE json_typeof(command.streams) WHEN 'array' THEN command.streams ELSE '[]' END
    ) AS one
) AS listed
FULL JOIN (
    SELECT tenant_id, command_id, aggregate, aggregate_id, max(version) AS version
    FROM sequor.events
    GROUP BY tenant_id, command_id, aggregate, aggregate_id
) AS written USING (tenant_id, command_id, aggregate, aggregate_id)
LEFT JOIN (
    SELECT tenant_id, aggregate, aggregate_id, version FROM sequor.streams
) AS stream USING (tenant_id, aggregate, aggregate_id)
WHERE CASE
    WHEN written.version IS NULL
        THEN listed.version IS NULL OR listed.version > coalesce(stream.version, 0)
    WHEN listed.version IS NULL
        THEN EXISTS (
            SELECT FROM sequor.commands AS command
            WHERE command.tenant_id = written.tenant_id
                AND command.command_id = written.command_id
        )
    ELSE listed.version <> written.version
END
ORDER BY tenant_id, command_id, aggregate, aggregate_id
LIMIT $1;
