-- Reading the log: up to the mark that no writer can undercut. See docs/adr/0009.

-- The candidate for a mark: the highest position of the partition that is visible, and the
-- transactions that hold the partition's lock (a holder is named by its virtual transaction; a
-- prepared one has no process). When all of those have ended, whatever lies at or below the
-- candidate is visible to a new snapshot, or will never exist.
CREATE FUNCTION sequor.candidate(wanted smallint)
RETURNS TABLE (candidate bigint, holders text[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    SELECT event.position INTO candidate
    FROM sequor.events AS event
    WHERE event.partition = wanted
    ORDER BY event.partition DESC, event.position DESC
    LIMIT 1;
    holders := sequor.holders(wanted);
    RETURN NEXT;
END
$$;

-- The transactions that hold a partition's lock now.
CREATE FUNCTION sequor.holders(wanted smallint) RETURNS text[]
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce(array_agg(lock.virtualtransaction), '{}')
    FROM sequor.partitions AS partition
    JOIN pg_locks AS lock
        ON lock.locktype = 'advisory' AND lock.objsubid = 1
        AND lock.classid = ((partition.lock_key >> 32) & 4294967295)::oid
        AND lock.objid = (partition.lock_key & 4294967295)::oid
    WHERE partition.partition = wanted AND lock.granted
        AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database());
END;

-- At most `wanted_count` events of a partition after a position, up to the mark, in order.
CREATE FUNCTION sequor.read_log(
    wanted smallint, after bigint, mark bigint, wanted_count bigint
)
RETURNS TABLE (
    tenant_id uuid, aggregate text, aggregate_id text, version bigint, "position" bigint,
    name text, schema_version integer, payload text, command_id uuid, key text, actor text,
    correlation_id uuid, causation_id uuid, recorded_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        event.tenant_id, event.aggregate, event.aggregate_id, event.version, event.position,
        event.name, event.schema_version, event.payload::text, command.command_id, command.key,
        command.actor, command.correlation_id, command.causation_id, command.recorded_at
    FROM sequor.events AS event
    LEFT JOIN sequor.commands AS command
        ON command.tenant_id = event.tenant_id AND command.command_id = event.command_id
    WHERE event.partition = wanted AND event.position > after AND event.position <= mark
    ORDER BY event.position
    LIMIT wanted_count;
END
$$;

-- What this database is, and whether it is fit for sequor: read when a store is opened.
CREATE FUNCTION sequor.self_check()
RETURNS TABLE (
    epoch uuid, partitions smallint, server_version integer, encoding text, next_position bigint,
    highest_position bigint, migration bigint, is_standby boolean, draws_in_order boolean
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        store.epoch, store.partitions, current_setting('server_version_num')::integer,
        current_setting('server_encoding'),
        (SELECT last_value + is_called::integer FROM sequor.positions),
        (
            SELECT coalesce(max(last.position), 0)
            FROM sequor.partitions AS partition
            CROSS JOIN LATERAL (
                SELECT event.position FROM sequor.events AS event
                WHERE event.partition = partition.partition
                ORDER BY event.partition DESC, event.position DESC
                LIMIT 1
            ) AS last
        ),
        (SELECT max(version) FROM sequor.migrations), pg_is_in_recovery(),
        (
            SELECT seqcache = 1 AND NOT seqcycle AND seqincrement = 1 FROM pg_sequence
            WHERE seqrelid = 'sequor.positions'::regclass
        )
    FROM sequor.store AS store
    WHERE store.id = 1;
END
$$;

REVOKE ALL ON FUNCTION
    sequor.candidate(smallint), sequor.holders(smallint),
    sequor.read_log(smallint, bigint, bigint, bigint), sequor.self_check()
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequor.self_check() TO sequor_app;
GRANT EXECUTE ON FUNCTION
    sequor.candidate(smallint), sequor.holders(smallint),
    sequor.read_log(smallint, bigint, bigint, bigint)
    TO sequor_system;
