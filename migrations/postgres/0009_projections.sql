-- How far projections have come: what they need to take in each event exactly once, and who may.
--
-- A step of a projection is one transaction: `begin_step` takes the row of its checkpoint, the
-- projection writes its rows as `sequor_app`, tenant by tenant, and `save_step` moves the
-- checkpoint on. Whoever lost the lease meanwhile finds a higher term, and moves nothing.

-- Whose turn it is: one runner has a checkpoint's lease, by this server's clock, and whoever takes
-- it next gets a higher term.
ALTER TABLE sequor.checkpoints
    ADD COLUMN owner uuid,
    ADD COLUMN term bigint NOT NULL DEFAULT 0,
    ADD COLUMN leased_until timestamptz NOT NULL DEFAULT '-infinity';

-- How far a release of a projection has come in a stream. Written with the checkpoint; one row an
-- aggregate and release that has met it, updated in place, removed with the release or the tenant.
CREATE TABLE sequor.projected_streams (
    tenant_id uuid NOT NULL,
    projection text COLLATE "C" NOT NULL,
    projection_version integer NOT NULL,
    aggregate text COLLATE "C" NOT NULL,
    aggregate_id text COLLATE "C" NOT NULL,
    partition smallint NOT NULL,
    -- Every event up to here was taken in.
    version bigint NOT NULL CHECK (version >= 0),
    -- Why those behind it wait, how often the first of them was tried, and since when: a parked
    -- stream's only.
    parked_reason text,
    parked_attempts integer,
    parked_since timestamptz,
    PRIMARY KEY (tenant_id, projection, projection_version, aggregate, aggregate_id),
    CHECK ((parked_reason IS NULL) = (parked_since IS NULL)),
    CHECK ((parked_reason IS NULL) = (parked_attempts IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- The streams that wait for a decision. Few, or something is wrong.
CREATE INDEX projected_streams_parked
    ON sequor.projected_streams (projection, projection_version, parked_since)
    WHERE parked_since IS NOT NULL;

ALTER TABLE sequor.projected_streams ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON sequor.projected_streams FOR SELECT TO sequor_app
    USING (tenant_id = (SELECT sequor.tenant()));
CREATE POLICY all_tenants ON sequor.projected_streams FOR SELECT TO sequor_system USING (true);
GRANT SELECT ON sequor.projected_streams TO sequor_app, sequor_system;
GRANT SELECT ON sequor.checkpoints TO sequor_system;

-- The runners of each release of a projection that are alive, so that they can share its partitions.
-- One row each, gone soon after.
CREATE TABLE sequor.runners (
    projection text COLLATE "C" NOT NULL,
    projection_version integer NOT NULL,
    runner uuid NOT NULL,
    alive_until timestamptz NOT NULL,
    PRIMARY KEY (projection, projection_version, runner)
);

-- A lease is never longer, so one that is was made before the clock was set back.
CREATE FUNCTION sequor.is_held(until timestamptz, now timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN until > now AND until < now + interval '15 minutes';

-- Takes or renews the lease of a checkpoint, and answers its term; NULL when somebody else has it.
-- A checkpoint whose row is in the middle of somebody's step is not waited for.
CREATE FUNCTION sequor.lease(
    wanted text, wanted_version integer, wanted_partition smallint, wanted_owner uuid, millis bigint
)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now timestamptz := clock_timestamp();
    until timestamptz := now + millis * interval '1 millisecond';
    held record;
BEGIN
    SELECT c.owner, c.term, c.leased_until INTO held FROM sequor.checkpoints AS c
    WHERE c.projection = wanted AND c.projection_version = wanted_version
        AND c.partition = wanted_partition
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO sequor.checkpoints (
            projection, projection_version, partition, position, owner, term, leased_until
        )
        VALUES (wanted, wanted_version, wanted_partition, 0, wanted_owner, 1, until)
        ON CONFLICT DO NOTHING;
        RETURN CASE WHEN FOUND THEN 1 END;
    END IF;
    IF held.owner IS DISTINCT FROM wanted_owner AND sequor.is_held(held.leased_until, now) THEN
        RETURN NULL;
    END IF;
    UPDATE sequor.checkpoints AS c
    SET owner = wanted_owner, leased_until = until,
        term = c.term + (held.owner IS DISTINCT FROM wanted_owner)::integer
    WHERE c.projection = wanted AND c.projection_version = wanted_version
        AND c.partition = wanted_partition
    RETURNING c.term INTO held.term;
    RETURN held.term;
END
$$;

-- Says that a runner of a release is alive, and answers how many are. Those that are gone are removed.
CREATE FUNCTION sequor.check_in(
    wanted text, wanted_version integer, wanted_runner uuid, millis bigint
)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    INSERT INTO sequor.runners AS one (projection, projection_version, runner, alive_until)
    VALUES (
        wanted, wanted_version, wanted_runner, now + millis * interval '1 millisecond'
    )
    ON CONFLICT (projection, projection_version, runner)
    DO UPDATE SET alive_until = excluded.alive_until;
    DELETE FROM sequor.runners AS one
    USING (
        SELECT gone.projection, gone.projection_version, gone.runner FROM sequor.runners AS gone
        WHERE NOT sequor.is_held(gone.alive_until, now)
        FOR UPDATE SKIP LOCKED
    ) AS gone
    WHERE one.projection = gone.projection AND one.projection_version = gone.projection_version
        AND one.runner = gone.runner;
    RETURN (
        SELECT count(*) FROM sequor.runners AS one
        WHERE one.projection = wanted AND one.projection_version = wanted_version
            AND sequor.is_held(one.alive_until, now)
    );
END
$$;

-- Where a checkpoint stands, and in which transaction it was asked; then, a row each, how the wanted
-- streams stand, as far as they were met.
CREATE FUNCTION sequor.standing(
    wanted text, wanted_version integer, wanted_partition smallint, tenants uuid[],
    aggregates text[], ids text[]
)
RETURNS TABLE (
    place bigint, "position" bigint, transaction text, version bigint, parked_reason text,
    parked_attempts integer, parked_since timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        0::bigint, c.position, pg_current_xact_id_if_assigned()::text, NULL::bigint, NULL::text,
        NULL::integer, NULL::timestamptz
    FROM sequor.checkpoints AS c
    WHERE c.projection = wanted AND c.projection_version = wanted_version
        AND c.partition = wanted_partition;
    RETURN QUERY
    SELECT
        asked.place, NULL::bigint, NULL::text, one.version, one.parked_reason,
        one.parked_attempts, one.parked_since
    FROM unnest(tenants, aggregates, ids) WITH ORDINALITY
        AS asked (tenant_id, aggregate, aggregate_id, place)
    CROSS JOIN LATERAL (
        SELECT * FROM sequor.projected_streams AS stream
        WHERE stream.tenant_id = asked.tenant_id
            AND stream.projection = wanted AND stream.projection_version = wanted_version
            AND stream.aggregate = asked.aggregate AND stream.aggregate_id = asked.aggregate_id
        -- So that the list drives, whatever was planned while the table was empty.
        LIMIT 1
    ) AS one;
END
$$;

-- Takes a checkpoint for a step: for the holder of a term, or (NULL) for an operator; and answers as
-- `standing`. No row: the lease has gone to somebody else.
CREATE FUNCTION sequor.begin_step(
    wait_millis integer, wanted text, wanted_version integer, wanted_partition smallint,
    wanted_term bigint, tenants uuid[], aggregates text[], ids text[]
)
RETURNS TABLE (
    place bigint, "position" bigint, transaction text, version bigint, parked_reason text,
    parked_attempts integer, parked_since timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('lock_timeout', wait_millis::text, true);
    PERFORM FROM sequor.checkpoints AS c
    WHERE c.projection = wanted AND c.projection_version = wanted_version
        AND c.partition = wanted_partition
        AND (wanted_term IS NULL OR c.term = wanted_term)
    FOR UPDATE;
    IF FOUND THEN
        -- A statement of its own, so that it sees what was saved while this one waited.
        RETURN QUERY SELECT * FROM sequor.standing(
            wanted, wanted_version, wanted_partition, tenants, aggregates, ids
        );
    END IF;
END
$$;

-- Moves a checkpoint on, with the streams that have moved. Fails where the transaction is another
-- one than that of `begin_step`: somebody's SQL has ended it.
CREATE FUNCTION sequor.save_step(
    wanted text, wanted_version integer, wanted_partition smallint, transaction text,
    new_position bigint, tenants uuid[], aggregates text[], ids text[], versions bigint[],
    reasons text[], attempts integer[], since timestamptz[]
)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM transaction THEN
        RAISE EXCEPTION 'the step was ended by somebody else''s COMMIT or ROLLBACK'
            USING ERRCODE = '25000';
    END IF;
    IF new_position IS NOT NULL THEN
        UPDATE sequor.checkpoints AS c SET position = new_position
        WHERE c.projection = wanted AND c.projection_version = wanted_version
            AND c.partition = wanted_partition;
    END IF;
    INSERT INTO sequor.projected_streams AS one (
        tenant_id, projection, projection_version, aggregate, aggregate_id, partition, version,
        parked_reason, parked_attempts, parked_since
    )
    SELECT
        moved.tenant_id, wanted, wanted_version, moved.aggregate, moved.aggregate_id,
        wanted_partition, moved.version, moved.reason, moved.attempts, moved.since
    FROM unnest(tenants, aggregates, ids, versions, reasons, attempts, since)
        AS moved (tenant_id, aggregate, aggregate_id, version, reason, attempts, since)
    ON CONFLICT (tenant_id, projection, projection_version, aggregate, aggregate_id)
    DO UPDATE SET
        version = excluded.version,
        parked_reason = excluded.parked_reason,
        parked_attempts = excluded.parked_attempts,
        parked_since = excluded.parked_since;
END
$$;

-- At most `wanted_count` parked streams of a release, those of longest standing first.
CREATE FUNCTION sequor.parked(wanted text, wanted_version integer, wanted_count bigint)
RETURNS TABLE (
    tenant_id uuid, aggregate text, aggregate_id text, version bigint, parked_reason text,
    parked_attempts integer, parked_since timestamptz, partition smallint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        one.tenant_id, one.aggregate, one.aggregate_id, one.version, one.parked_reason,
        one.parked_attempts, one.parked_since, one.partition
    FROM sequor.projected_streams AS one
    WHERE one.projection = wanted AND one.projection_version = wanted_version
        AND one.parked_since IS NOT NULL
    ORDER BY one.parked_since
    LIMIT wanted_count;
END
$$;

REVOKE ALL ON FUNCTION
    sequor.is_held(timestamptz, timestamptz),
    sequor.lease(text, integer, smallint, uuid, bigint), sequor.check_in(text, integer, uuid, bigint),
    sequor.standing(text, integer, smallint, uuid[], text[], text[]),
    sequor.parked(text, integer, bigint),
    sequor.begin_step(
        integer, text, integer, smallint, bigint, uuid[], text[], text[]
    ),
    sequor.save_step(
        text, integer, smallint, text, bigint, uuid[], text[], text[], bigint[], text[],
        integer[], timestamptz[]
    )
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    sequor.lease(text, integer, smallint, uuid, bigint), sequor.check_in(text, integer, uuid, bigint),
    sequor.standing(text, integer, smallint, uuid[], text[], text[]),
    sequor.parked(text, integer, bigint),
    sequor.begin_step(
        integer, text, integer, smallint, bigint, uuid[], text[], text[]
    ),
    sequor.save_step(
        text, integer, smallint, text, bigint, uuid[], text[], text[], bigint[], text[],
        integer[], timestamptz[]
    )
    TO sequor_system;
