-- How much there is.
SELECT
    (SELECT count(*) FROM main.commands),
    (SELECT count(*) FROM main.events),
    (SELECT count(*) FROM main.streams),
    (SELECT count(*) FROM main.idempotency_keys WHERE state = 0),
    (SELECT count(*) FROM main.idempotency_keys WHERE state = 1),
    (
        SELECT count(*) FROM main.idempotency_keys
        WHERE state = 1 AND lease_until < CAST(unixepoch('subsec') * 1000000 AS INTEGER)
    ),
    (SELECT count(*) FROM main.unique_keys);
