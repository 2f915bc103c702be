-- How far positions were drawn, if it is not as far as they are stored.
SELECT 1, sequence.drawn, stored.highest
FROM (
    SELECT coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'events'), 0) AS drawn
) AS sequence
CROSS JOIN (SELECT coalesce(max(position), 0) AS highest FROM main.events) AS stored
WHERE sequence.drawn < stored.highest AND ?1 > 0;
