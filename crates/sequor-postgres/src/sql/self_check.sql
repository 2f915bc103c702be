-- What this database is, and whether it is fit for sequor.
SELECT
    epoch, partitions, server_version, encoding, next_position, highest_position, migration,
    is_standby, draws_in_order
FROM sequor.self_check();
