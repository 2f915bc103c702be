-- A row, if sequor's roles are there or may be made by who asks.
SELECT
FROM pg_roles AS me
WHERE me.rolname = current_user
    AND (
        me.rolsuper OR me.rolcreaterole
        OR (SELECT count(*) FROM pg_roles WHERE rolname IN ('sequor_app', 'sequor_system')) = 2
    );
