-- Events that are in another partition than their tenant is.
SELECT
    count(*) OVER (), event.tenant_id, event.aggregate, event.aggregate_id, event.version,
    event.position, event.partition, home.partition
FROM sequor.events AS event
JOIN (
    SELECT seen.tenant_id, sequor.partition_of(seen.tenant_id, store.partitions) AS partition
    FROM (SELECT tenant_id FROM sequor.events GROUP BY tenant_id) AS seen
    CROSS JOIN sequor.store AS store
) AS home ON home.tenant_id = event.tenant_id
WHERE event.partition <> home.partition
ORDER BY event.position
LIMIT $1;
