-- Streams whose stored version is not that of their last event. Both sides are grouped, since SQLite
-- would compare each with each where it joins them fully.
SELECT count(*) OVER (), tenant_id, aggregate, aggregate_id, max(stored), max(last)
FROM (
    SELECT tenant_id, aggregate, aggregate_id, version AS stored, NULL AS last FROM main.streams
    UNION ALL
    SELECT tenant_id, aggregate, aggregate_id, NULL, version FROM main.events
)
GROUP BY tenant_id, aggregate, aggregate_id
HAVING max(stored) IS NOT max(last)
ORDER BY tenant_id, aggregate, aggregate_id
LIMIT ?1;
