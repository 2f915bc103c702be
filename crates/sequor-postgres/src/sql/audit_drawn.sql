-- How far positions were drawn, if it is not as far as they are stored.
SELECT 1::bigint, sequence.drawn, stored.highest
FROM (SELECT last_value - (NOT is_called)::integer AS drawn FROM sequor.positions) AS sequence
CROSS JOIN (SELECT coalesce(max(position), 0) AS highest FROM sequor.events) AS stored
WHERE sequence.drawn < stored.highest AND $1 > 0;
