-- How much there is.
SELECT
    (SELECT count(*) FROM sequor.commands),
    (SELECT count(*) FROM sequor.events),
    (SELECT count(*) FROM sequor.streams WHERE version > 0),
    (SELECT count(*) FROM sequor.idempotency_keys WHERE state = 0),
    (SELECT count(*) FROM sequor.idempotency_keys_archive),
    (SELECT coalesce(sum(keys), 0)::bigint FROM sequor.dropped_months),
    (SELECT count(*) FROM sequor.idempotency_keys WHERE state = 1),
    (
        SELECT count(*) FROM sequor.idempotency_keys
        WHERE state = 1 AND lease_until < clock_timestamp()
    ),
    (SELECT count(*) FROM sequor.unique_keys),
    (SELECT count(*) FROM sequor.outbox);
