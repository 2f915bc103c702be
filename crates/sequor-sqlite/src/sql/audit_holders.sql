-- Values whose holder has no stream, and is not among the aggregates of any command.
SELECT
    count(*) OVER (), held.tenant_id, held.aggregate, held.aggregate_id, held.scope, held.value
FROM main.unique_keys AS held
WHERE NOT EXISTS (
    SELECT 1 FROM main.streams AS stream
    WHERE stream.tenant_id = held.tenant_id AND stream.aggregate = held.aggregate
        AND stream.aggregate_id = held.aggregate_id
) AND (held.tenant_id, held.aggregate, held.aggregate_id) NOT IN (
    SELECT command.tenant_id, part.value ->> 0, part.value ->> 1
    FROM main.commands AS command
    CROSS JOIN json_each(iif(json_valid(command.streams), command.streams, '[]')) AS part
    WHERE part.type = 'array' AND part.value ->> 0 IS NOT NULL AND part.value ->> 1 IS NOT NULL
)
ORDER BY held.tenant_id, held.scope, held.value
LIMIT ?1;
