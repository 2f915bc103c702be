-- Keys past their retention: moved to the archive, exported month by month, dropped.

-- Changes the guarantee. Less than a day needs `even_short`: callers may retry for that long.
CREATE FUNCTION sequor.keep_keys(wanted interval, even_short boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF wanted < interval '24 hours' AND NOT even_short THEN
        RAISE EXCEPTION 'keys are kept for at least 24 hours' USING
            ERRCODE = '22023',
            HINT = 'sequor.keep_keys(…, even_short => true), if no caller retries for so long';
    END IF;
    UPDATE sequor.retention SET keep = wanted WHERE id = 1;
END
$$;

-- The archive's table for the month of a moment (UTC), made where it is missing.
CREATE FUNCTION sequor.make_archive_month(moment timestamptz) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    month date := date_trunc('month', moment AT TIME ZONE 'UTC')::date;
    name text := 'idempotency_keys_archive_' || to_char(month, 'YYYY_MM');
BEGIN
    IF to_regclass(format('sequor.%I', name)) IS NOT NULL THEN
        RETURN;
    END IF;
    -- One reaper makes it, and the others find it.
    PERFORM pg_advisory_xact_lock(hashtextextended('sequor:archive:1', 0));
    -- Asked of the table of tables: to_regclass may remember that it was not there.
    IF NOT EXISTS (
        SELECT FROM pg_class WHERE relname = name AND relnamespace = 'sequor'::regnamespace
    ) THEN
        -- Made beside and attached, which lets everybody read and write meanwhile.
        EXECUTE format(
            'CREATE TABLE sequor.%I (LIKE sequor.idempotency_keys_archive INCLUDING DEFAULTS)', name
        );
        EXECUTE format('ALTER TABLE sequor.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'ALTER TABLE sequor.idempotency_keys_archive ATTACH PARTITION sequor.%I '
            'FOR VALUES FROM (%L) TO (%L)',
            name, month::text || ' 00:00:00+00',
            (month + interval '1 month')::date::text || ' 00:00:00+00'
        );
    END IF;
END
$$;

-- Moves at most so many keys that are past their retention to the archive, the oldest first, and
-- answers how many. Reservations stay, and so does what somebody is working on. On this server's
-- clock, which no caller can set. Neither a bitmap nor a sort: each would read all old keys first.
CREATE FUNCTION sequor.reap_keys(wanted_count integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
    cutoff timestamptz;
    moved bigint;
    newest timestamptz;
BEGIN
    PERFORM sequor.make_archive_month(clock_timestamp());
    SELECT clock_timestamp() - r.keep INTO cutoff FROM sequor.retention AS r WHERE r.id = 1;
    WITH old AS (
        SELECT key.tenant_id, key.key FROM sequor.idempotency_keys AS key
        WHERE key.claimed_at < cutoff AND key.state = 0
        ORDER BY key.claimed_at
        LIMIT wanted_count
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM sequor.idempotency_keys AS key
        USING old
        WHERE key.tenant_id = old.tenant_id AND key.key = old.key
        RETURNING key.tenant_id, key.key, key.command_id, key.claimed_at
    ), kept AS (
        INSERT INTO sequor.idempotency_keys_archive (tenant_id, key, command_id, claimed_at)
        SELECT gone.tenant_id, gone.key, gone.command_id, gone.claimed_at FROM gone
        RETURNING key, claimed_at
    )
    SELECT
        count(*),
        max(greatest(kept.claimed_at, sequor.key_time(kept.key) - interval '7 days'))
    INTO moved, newest
    FROM kept;
    IF moved > 0 THEN
        UPDATE sequor.retention AS r SET archived_to = newest
        WHERE r.id = 1 AND newest > coalesce(r.archived_to, '-infinity');
    END IF;
    RETURN moved;
END
$$;

-- The months that are archived, with what they hold: the digest is of the rows as text, in any order.
-- How times are written is fixed, so that it is the same in every session.
CREATE FUNCTION sequor.archive_months()
RETURNS TABLE (month text, keys bigint, digest bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET TimeZone = 'UTC' SET DateStyle = 'ISO, MDY'
AS $$
BEGIN
    RETURN QUERY
    SELECT
        to_char(archive.archived_at AT TIME ZONE 'UTC', 'YYYY-MM'), count(*),
        bit_xor(hashtextextended(archive::text, 0))
    FROM sequor.idempotency_keys_archive AS archive
    GROUP BY 1
    ORDER BY 1;
END
$$;

-- A page of a month (such as '2026-11'), by tenant and key, after a row.
CREATE FUNCTION sequor.read_archive(
    wanted text, after_tenant uuid, after_key text, wanted_count integer
)
RETURNS TABLE (
    tenant_id uuid, key text, command_id uuid, claimed_at timestamptz, archived_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    first_day timestamptz := (wanted || '-01')::timestamp AT TIME ZONE 'UTC';
BEGIN
    RETURN QUERY
    SELECT
        archive.tenant_id, archive.key, archive.command_id, archive.claimed_at, archive.archived_at
    FROM sequor.idempotency_keys_archive AS archive
    WHERE archive.archived_at >= first_day AND archive.archived_at < first_day + interval '1 month'
        AND (archive.tenant_id, archive.key) > (after_tenant, after_key)
    ORDER BY archive.tenant_id, archive.key
    LIMIT wanted_count;
END
$$;

-- Drops a month that is over and holds just what was exported. Afterwards a retry under one of its
-- keys runs again. Else it is kept: SQ004 when it is not over, SQ006 when it is not there, SQ007 when
-- it holds something else.
CREATE FUNCTION sequor.drop_archive_month(wanted text, exported_keys bigint, exported_digest bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET TimeZone = 'UTC' SET DateStyle = 'ISO, MDY'
AS $$
DECLARE
    name text := 'idempotency_keys_archive_' || replace(wanted, '-', '_');
    found_keys bigint;
    found_digest bigint;
BEGIN
    IF wanted !~ '^[0-9]{4}-[0-9]{2}$' THEN
        RAISE EXCEPTION 'a month looks like 2026-11' USING ERRCODE = 'SQ006';
    END IF;
    IF wanted >= to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM') THEN
        RAISE EXCEPTION 'only a month that is over is dropped' USING ERRCODE = 'SQ004';
    END IF;
    BEGIN
        EXECUTE format('LOCK TABLE sequor.%I IN EXCLUSIVE MODE', name);
    EXCEPTION WHEN undefined_table THEN
        RAISE EXCEPTION 'no such month is archived' USING ERRCODE = 'SQ006';
    END;
    EXECUTE format(
        'SELECT count(*), bit_xor(hashtextextended(archive::text, 0)) FROM sequor.%I AS archive', name
    ) INTO found_keys, found_digest;
    IF found_keys <> exported_keys OR found_digest IS DISTINCT FROM exported_digest THEN
        RAISE EXCEPTION 'the month holds something else than was exported' USING ERRCODE = 'SQ007';
    END IF;
    -- Everybody who comes queues up behind this; so it waits for a moment only, and is tried again.
    PERFORM set_config('lock_timeout', '50', true);
    EXECUTE format('DROP TABLE sequor.%I', name);
END
$$;

REVOKE ALL ON FUNCTION
    sequor.keep_keys(interval, boolean), sequor.make_archive_month(timestamptz),
    sequor.reap_keys(integer), sequor.archive_months(),
    sequor.read_archive(text, uuid, text, integer), sequor.drop_archive_month(text, bigint, bigint)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    sequor.reap_keys(integer), sequor.archive_months(),
    sequor.read_archive(text, uuid, text, integer), sequor.drop_archive_month(text, bigint, bigint)
    TO sequor_system;
