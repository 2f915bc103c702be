-- Which life of which server answers, and whether it only follows another one. It is another life
-- after a failover, a restart, or a crash, which begins the server's own counts anew.
SELECT
    concat_ws(
        ' ', extract(epoch FROM pg_postmaster_start_time()),
        (SELECT extract(epoch FROM stats_reset) FROM pg_stat_wal)
    ),
    pg_is_in_recovery();
