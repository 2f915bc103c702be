-- How a batch of commands becomes true.
--
-- Rights and plans are as 0002_claim_and_read.sql says.

-- Commits a batch under the locks of its partitions (`lock_keys`, sorted): for the tenant
-- `speaks_for` in the transaction of a handler, where the key may be claimed already (`is_claimed`);
-- for any tenants (NULL) in one of the bus.
--
-- The rest are columns: commands (c_); the streams they touch, sorted and each once (s_); what each
-- command does to them (w_); events (e_); changes of unique values (u_). w_, e_ and u_ name command
-- and stream by their place, from 1, and come in the order of the commands; a batch has no key
-- twice. Each command succeeds, is answered by what is remembered under its key, or is refused, on
-- its own. No lock of somebody else is waited for any longer than `wait_ms`.
--
-- A batch that `is_straight` changes no unique values, and what its commands do to a stream leads
-- from `s_expected` to `s_next` without a gap. If it meets nothing unexpected, which is the ordinary
-- case, it is written as a whole; everything else is judged, command by command (`sequor.judge`).
--
-- Answers first a row with the `verdicts` of all commands, and the `positions` of all events that
-- happened; then a row for each command (by its `place`) of which there is more to say:
--   verdict 0  it is true once this transaction is
--           1  its key is known: the record
--           2  a stream (by its place) has moved on: its version is `actual`
--           3  a value is taken: scope, value and holder
--           4  somebody else held a lock for too long
--           5  its key is archived: the record, in state 2
--           6  there was no time to try, because others had to wait
--
-- Order of locks, the same in every process, so that none wait for each other in a circle:
-- partitions (shared, never waited for), keys, streams that exist, streams that do not, unique
-- values; each sorted. Positions are drawn last, while all of them are held.
CREATE FUNCTION sequor.commit(
    wait_ms integer, speaks_for uuid, written_before uuid, is_claimed boolean,
    is_straight boolean, lock_keys bigint[],
    c_tenant uuid[], c_partition smallint[], c_command uuid[], c_key text[], c_name text[],
    c_payload text[], c_fingerprint bytea[], c_output text[], c_actor text[],
    c_correlation uuid[], c_causation uuid[], c_recorded_at timestamptz[], c_streams text[],
    c_last_event integer[],
    s_tenant uuid[], s_aggregate text[], s_id text[], s_expected bigint[], s_after uuid[],
    s_next bigint[], s_maker uuid[],
    w_command integer[], w_stream integer[], w_expected bigint[], w_after uuid[], w_next bigint[],
    e_command integer[], e_stream integer[], e_version bigint[], e_name text[], e_schema integer[],
    e_payload text[],
    u_command integer[], u_stream integer[], u_kind smallint[], u_scope text[], u_value text[]
)
RETURNS TABLE (
    verdicts smallint[], positions bigint[], place integer, stream integer, actual bigint,
    scope text, value text, holder_aggregate text, holder_id text,
    command_id uuid, name text, fingerprint bytea, actor text, recorded_at timestamptz,
    streams text, output text, "position" bigint, state smallint, lease_until timestamptz,
    fence bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    commands constant integer := cardinality(c_command);
    keyed constant integer := commands - cardinality(array_positions(c_key, NULL));
    waits_before constant text := current_setting('lock_timeout');
    fresh uuid[];
    archived_to timestamptz;
    expired uuid[] := array_fill(NULL::uuid, ARRAY[commands]);
    -- Of the streams that exist: places, versions, and the commands that made these.
    places integer[];
    existing bigint[];
    existing_by uuid[];
    unmet bigint;
    made bigint := 0;
    -- Of each stream, where it must be judged: as it is, see `sequor.make_streams`, and as it will be.
    stored bigint[];
    stored_by uuid[];
    versions bigint[];
    makers uuid[];
    refusals jsonb[];
    is_blocked boolean := false;
    ignored text;
    lock_key bigint;
    i integer;
BEGIN
    verdicts := array_fill(0::smallint, ARRAY[commands]);
    -- Calls are assigned, not performed: an assignment needs no plan of its own.
    ignored := sequor.check_commit(speaks_for, written_before, c_tenant || s_tenant);
    -- At top level, so that no failed block can let go of it: see docs/adr/0009.
    ignored := set_config('lock_timeout', wait_ms::text, true);
    FOREACH lock_key IN ARRAY lock_keys LOOP
        ignored := pg_advisory_xact_lock_shared(lock_key);
    END LOOP;

    -- Keys. A claim waits for a rival that has not ended; whoever finds a record loses.
    IF keyed > 0 AND NOT is_claimed THEN
        BEGIN
            WITH claimed AS (
                INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
                SELECT c.tenant, c.key, c.command
                FROM unnest(c_tenant, c_key, c_command) AS c (tenant, key, command)
                WHERE c.key IS NOT NULL
                ORDER BY c.tenant, c.key COLLATE "C"
                ON CONFLICT (tenant_id, key) DO NOTHING
                RETURNING command_id
            )
            SELECT array_agg(command_id) INTO fresh FROM claimed;
            IF coalesce(cardinality(fresh), 0) < keyed THEN
                FOR i IN 1..commands LOOP
                    IF c_key[i] IS NOT NULL AND (c_command[i] = ANY (fresh)) IS NOT TRUE THEN
                        verdicts[i] := 1;
                    END IF;
                END LOOP;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            is_blocked := true;
        END;
        IF is_blocked THEN
            verdicts := sequor.claim_one_by_one(wait_ms, c_tenant, c_key, c_command);
        END IF;
        -- A statement of its own behind the claims, hence a snapshot that sees what was archived
        -- while they waited.
        SELECT r.archived_to INTO archived_to FROM sequor.retention AS r WHERE r.id = 1;
        IF archived_to IS NOT NULL THEN
            FOR i IN 1..commands LOOP
                IF verdicts[i] = 0 AND c_key[i] IS NOT NULL
                    AND NOT sequor.is_young(c_key[i], archived_to)
                THEN
                    expired[i] := sequor.archived(c_tenant[i], c_key[i]);
                    IF expired[i] IS NOT NULL THEN
                        verdicts[i] := 5;
                    END IF;
                END IF;
            END LOOP;
        END IF;
        is_straight := is_straight AND 0 = ALL (verdicts);
    END IF;

    -- Streams: their rows are locked, and so are the places of those that do not exist.
    IF cardinality(s_id) > 0 THEN
        is_blocked := false;
        BEGIN
            WITH locked AS (
                SELECT
                    s.place, stream.version, stream.command_id,
                    stream.version = s.expected
                        AND (s.after IS NULL OR stream.command_id = s.after) AS is_met
                FROM unnest(s_tenant, s_aggregate, s_id, s_expected, s_after)
                    WITH ORDINALITY AS s (tenant, aggregate, id, expected, after, place)
                JOIN sequor.streams AS stream
                    ON stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
                    AND stream.aggregate_id = s.id
                ORDER BY s.place
                FOR UPDATE OF stream
            )
            SELECT
                array_agg(place), array_agg(version), array_agg(command_id),
                count(*) FILTER (WHERE NOT is_met)
            INTO places, existing, existing_by, unmet
            FROM locked;
            is_straight := is_straight AND unmet = 0;
            IF is_straight AND coalesce(cardinality(places), 0) < cardinality(s_id) THEN
                INSERT INTO sequor.streams (tenant_id, aggregate, aggregate_id, version, command_id)
                SELECT s.tenant, s.aggregate, s.id, s.next, s.maker
                FROM unnest(s_tenant, s_aggregate, s_id, s_expected, s_after, s_next, s_maker)
                    WITH ORDINALITY
                    AS s (tenant, aggregate, id, expected, after, next, maker, place)
                WHERE s.expected = 0 AND s.after IS NULL
                ORDER BY s.place
                ON CONFLICT (tenant_id, aggregate, aggregate_id) DO NOTHING;
                GET DIAGNOSTICS made = ROW_COUNT;
                is_straight := coalesce(cardinality(places), 0) + made = cardinality(s_id);
            END IF;
            IF NOT is_straight THEN
                SELECT made.stored, made.stored_by INTO stored, stored_by
                FROM sequor.make_streams(
                    s_tenant, s_aggregate, s_id, s_next, s_maker, commands = 1, places, existing,
                    existing_by
                ) AS made;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            is_blocked := true;
        END;
        IF is_blocked THEN
            is_straight := false;
            SELECT locked.stored, locked.stored_by INTO stored, stored_by
            FROM sequor.lock_streams_one_by_one(
                wait_ms, s_tenant, s_aggregate, s_id, s_next, s_maker
            ) AS locked;
        END IF;
    END IF;

    IF is_straight THEN
        ignored := set_config('lock_timeout', waits_before, true);
        IF places IS NOT NULL THEN
            UPDATE sequor.streams AS stream SET version = s.next, command_id = s.maker
            FROM unnest(s_tenant, s_aggregate, s_id, s_expected, s_next, s_maker)
                AS s (tenant, aggregate, id, expected, next, maker)
            WHERE stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
                AND stream.aggregate_id = s.id AND s.expected > 0 AND s.next > s.expected;
        END IF;
    ELSE
        SELECT judged.verdicts, judged.versions, judged.makers, judged.refusals
        INTO verdicts, versions, makers, refusals
        FROM sequor.judge(
            c_command, s_tenant, s_aggregate, s_id, w_command, w_stream, w_expected, w_after,
            w_next, u_command, u_stream, u_kind, u_scope, u_value, stored, stored_by, verdicts
        ) AS judged;
        ignored := set_config('lock_timeout', waits_before, true);
        ignored := sequor.write_versions(
            s_tenant, s_aggregate, s_id, stored, stored_by, versions, makers
        );
        -- What was claimed by those that are refused is let go of.
        IF keyed > 0 AND NOT is_claimed AND verdicts && ARRAY[2, 3, 4, 5, 6]::smallint[] THEN
            DELETE FROM sequor.idempotency_keys AS known
            USING unnest(c_tenant, c_key, c_command, verdicts) AS c (tenant, key, command, verdict)
            WHERE known.tenant_id = c.tenant AND known.key = c.key
                AND known.command_id = c.command AND c.verdict > 1;
        END IF;
    END IF;
    IF is_claimed AND verdicts[1] = 0 THEN
        UPDATE sequor.idempotency_keys AS known SET command_id = c.command
        FROM unnest(c_tenant, c_key, c_command) AS c (tenant, key, command)
        WHERE known.tenant_id = c.tenant AND known.key = c.key
            AND known.command_id = '00000000-0000-0000-0000-000000000000';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'a command was written whose key is not claimed' USING ERRCODE = 'SQ003';
        END IF;
    END IF;

    -- Positions, last of all that is locked.
    positions := ARRAY(
        SELECT CASE WHEN verdicts[e.command] = 0 THEN nextval('sequor.positions') END
        FROM unnest(e_command) AS e (command)
    );
    WITH happened AS (
        INSERT INTO sequor.events (
            tenant_id, aggregate, aggregate_id, version, partition, position, name,
            schema_version, payload, command_id
        )
        SELECT
            s_tenant[e.stream], s_aggregate[e.stream], s_id[e.stream], e.version,
            c_partition[e.command], e.position, e.name, e.schema_version, e.payload::json,
            c_command[e.command]
        FROM unnest(e_command, e_stream, e_version, e_name, e_schema, e_payload, positions)
            AS e (command, stream, version, name, schema_version, payload, position)
        WHERE e.position IS NOT NULL
    )
    INSERT INTO sequor.commands (
        tenant_id, command_id, key, name, payload, fingerprint, output, actor, correlation_id,
        causation_id, recorded_at, streams, position
    )
    SELECT
        c.tenant, c.command, c.key, c.name, c.payload::json, c.fingerprint, c.output::json,
        c.actor, c.correlation, c.causation, c.recorded_at, c.streams::json,
        positions[c.last_event]
    FROM unnest(
        c_tenant, c_command, c_key, c_name, c_payload, c_fingerprint, c_output, c_actor,
        c_correlation, c_causation, c_recorded_at, c_streams, c_last_event, verdicts
    ) AS c (
        tenant, command, key, name, payload, fingerprint, output, actor, correlation, causation,
        recorded_at, streams, last_event, verdict
    )
    WHERE c.verdict = 0;

    -- Undone together with what was written, so that it tells whether that is still there.
    ignored := set_config('sequor.written', c_command[commands]::text, true);

    RETURN NEXT;
    IF is_straight THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT
        NULL::smallint[], NULL::bigint[], c.place::integer,
        (c.refusal ->> 'stream')::integer, (c.refusal ->> 'actual')::bigint,
        c.refusal ->> 'scope', c.refusal ->> 'value', c.refusal ->> 'aggregate',
        c.refusal ->> 'id',
        NULL::uuid, NULL::text, NULL::bytea, NULL::text, NULL::timestamptz, NULL::text, NULL::text,
        NULL::bigint, NULL::smallint, NULL::timestamptz, NULL::bigint
    FROM unnest(refusals) WITH ORDINALITY AS c (refusal, place)
    WHERE c.refusal IS NOT NULL;
    IF 1 = ANY (verdicts) THEN
        -- A statement of its own, hence a snapshot that sees the winners.
        RETURN QUERY
        SELECT
            NULL::smallint[], NULL::bigint[], c.place::integer, NULL::integer, NULL::bigint, NULL::text,
            NULL::text, NULL::text, NULL::text,
            command.command_id, command.name, command.fingerprint, command.actor,
            command.recorded_at, command.streams::text, command.output::text, command.position,
            known.state, known.lease_until, known.fence
        FROM unnest(c_tenant, c_key, verdicts) WITH ORDINALITY AS c (tenant, key, verdict, place)
        JOIN sequor.idempotency_keys AS known
            ON known.tenant_id = c.tenant AND known.key = c.key
        LEFT JOIN sequor.commands AS command
            ON command.tenant_id = known.tenant_id AND command.command_id = known.command_id
        WHERE c.verdict = 1;
    END IF;
    IF 5 = ANY (verdicts) THEN
        RETURN QUERY
        SELECT
            NULL::smallint[], NULL::bigint[], c.place::integer, NULL::integer, NULL::bigint, NULL::text,
            NULL::text, NULL::text, NULL::text, record.*
        FROM unnest(c_tenant, expired) WITH ORDINALITY AS c (tenant, expired, place)
        CROSS JOIN LATERAL sequor.expired_record(c.tenant, c.expired) AS record
        WHERE c.expired IS NOT NULL;
    END IF;
END
$$;

REVOKE ALL ON FUNCTION sequor.commit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequor.commit TO sequor_app;
