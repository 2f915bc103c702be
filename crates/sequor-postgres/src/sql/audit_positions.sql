-- Positions that several events of a partition have, though the index should not let them.
SELECT count(*) OVER (), partition, position, count(*)
FROM sequor.events
GROUP BY partition, position
HAVING count(*) > 1
ORDER BY partition, position
LIMIT $1;
