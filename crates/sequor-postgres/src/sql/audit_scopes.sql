-- Aggregates that hold several values in one scope.
SELECT count(*) OVER (), tenant_id, aggregate, aggregate_id, scope, count(*)
FROM sequor.unique_keys
GROUP BY tenant_id, aggregate, aggregate_id, scope
HAVING count(*) > 1
ORDER BY tenant_id, aggregate, aggregate_id, scope
LIMIT $1;
