-- Values whose holder has no stream, and is not among the aggregates of any command.
SELECT
    count(*) OVER (), held.tenant_id, held.aggregate, held.aggregate_id, held.scope, held.value
FROM sequor.unique_keys AS held
WHERE NOT EXISTS (
    SELECT FROM sequor.streams AS stream
    WHERE stream.tenant_id = held.tenant_id AND stream.aggregate = held.aggregate
        AND stream.aggregate_id = held.aggregate_id
) AND NOT EXISTS (
    SELECT
    FROM sequor.commands AS command
    CROSS JOIN json_array_elements(
        CASE json_typeof(command.streams) WHEN 'array' THEN command.streams ELSE '[]' END
    ) AS one
    WHERE command.tenant_id = held.tenant_id AND one.value ->> 0 = held.aggregate
        AND one.value ->> 1 = held.aggregate_id
)
ORDER BY held.tenant_id, held.scope, held.value
LIMIT $1;
