-- Ids that several commands of a tenant have.
SELECT count(*) OVER (), tenant_id, command_id, count(*)
FROM main.commands
GROUP BY tenant_id, command_id
HAVING count(*) > 1
ORDER BY tenant_id, command_id
LIMIT ?1;
