-- A row, if sequor's roles are there and may look into its schema, and every table has its walls: one
-- for each role. The archive's months have those of the archive.
SELECT
FROM pg_roles AS role
WHERE role.rolname IN ('sequor_app', 'sequor_system')
    AND has_schema_privilege(role.oid, 'sequor', 'USAGE')
    AND NOT EXISTS (
        SELECT FROM pg_class AS walled
        WHERE walled.relnamespace = 'sequor'::regnamespace
            AND walled.relrowsecurity AND NOT walled.relispartition
            AND (SELECT count(*) FROM pg_policy WHERE polrelid = walled.oid) < 2
    )
HAVING count(*) = 2;
