-- A row, unless sequor's tables are there and their sequence of positions is not.
SELECT
WHERE (
    SELECT count(*) FROM pg_class AS found
    JOIN pg_namespace AS place ON place.oid = found.relnamespace
    WHERE place.nspname = 'sequor' AND found.relname IN ('events', 'store')
) < 2
OR EXISTS (
    SELECT FROM pg_class AS found
    JOIN pg_namespace AS place ON place.oid = found.relnamespace
    WHERE place.nspname = 'sequor' AND found.relname = 'positions'
);
