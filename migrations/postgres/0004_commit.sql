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
-- Answers a row a command:
--   verdict 0  it is true once this transaction is: `positions` of its events
--           1  its key is known: the record
--           2  a stream (by its place) has moved on: its version is `actual`
--           3  a value is taken: scope, value and holder
--           4  somebody else held a lock for too long
--           6  there was no time to try, because others had to wait
--           5  its key is archived: the record, in state 2
--
-- Order of locks, the same in every process, so that none wait for each other in a circle:
-- partitions (shared, never waited for), keys, streams that exist, streams that do not, unique
-- values; each sorted. Positions are drawn last, while all of them are held.
CREATE FUNCTION sequor.commit(
    wait_ms integer, speaks_for uuid, written_before uuid, is_claimed boolean, lock_keys bigint[],
    c_tenant uuid[], c_partition smallint[], c_command uuid[], c_key text[], c_name text[],
    c_payload text[], c_fingerprint bytea[], c_output text[], c_actor text[],
    c_correlation uuid[], c_causation uuid[], c_recorded_at timestamptz[], c_streams text[],
    s_tenant uuid[], s_aggregate text[], s_id text[],
    w_command integer[], w_stream integer[], w_expected bigint[], w_after uuid[], w_next bigint[],
    e_command integer[], e_stream integer[], e_version bigint[], e_name text[], e_schema integer[],
    e_payload text[],
    u_command integer[], u_stream integer[], u_kind smallint[], u_scope text[], u_value text[]
)
RETURNS TABLE (
    place integer, verdict smallint, positions bigint[], stream integer, actual bigint,
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
    writes constant integer := cardinality(w_command);
    changes constant integer := cardinality(u_command);
    keyed constant integer := commands - cardinality(array_positions(c_key, NULL));
    waits_before constant text := current_setting('lock_timeout');
    verdicts smallint[] := array_fill(0::smallint, ARRAY[commands]);
    fresh uuid[];
    -- Of each stream: the version in its row, or -1, and the version after the commands so far;
    -- each with the command that made it.
    stored bigint[];
    stored_by uuid[];
    versions bigint[];
    makers uuid[];
    is_blocked boolean := false;
    -- Of each change, after a lock was met: whether somebody else holds what it touches.
    is_held boolean[];
    refusals jsonb[];
    ignored text;
    lock_key bigint;
    changed boolean := false;
    vain boolean := false;
    maker uuid;
    archived_to timestamptz;
    expired uuid[] := array_fill(NULL::uuid, ARRAY[commands]);
    e_position bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(e_command)]);
    c_position bigint[] := array_fill(NULL::bigint, ARRAY[commands]);
    first_write integer;
    next_write integer := 1;
    next_change integer := 1;
    next_event integer := 1;
    first_change integer;
    first_event integer;
    i integer;
    j integer;
    found_version bigint;
BEGIN
    -- Calls are assigned, not performed: an assignment needs no plan of its own.
    ignored := sequor.check_isolation();
    ignored := sequor.check_open(speaks_for, written_before);
    ignored := sequor.check_tenant(c_tenant);
    ignored := sequor.check_tenant(s_tenant);
    -- At top level, so that no failed block can let go of it: see docs/adr/0009.
    ignored := set_config('lock_timeout', wait_ms::text, true);
    FOREACH lock_key IN ARRAY lock_keys LOOP
        ignored := pg_advisory_xact_lock_shared(lock_key);
    END LOOP;

    -- Keys. A claim waits for a rival that has not ended; who finds a record loses.
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
    END IF;

    -- Streams: their rows are locked, and so are the places of those that do not exist.
    IF cardinality(s_id) > 0 THEN
        is_blocked := false;
        stored := array_fill(NULL::bigint, ARRAY[cardinality(s_id)]);
        stored_by := array_fill(NULL::uuid, ARRAY[cardinality(s_id)]);
        BEGIN
            FOR i, found_version, maker IN
                SELECT s.place, stream.version, stream.command_id
                FROM unnest(s_tenant, s_aggregate, s_id)
                    WITH ORDINALITY AS s (tenant, aggregate, id, place)
                JOIN sequor.streams AS stream
                    ON stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
                    AND stream.aggregate_id = s.id
                ORDER BY s.place
                FOR UPDATE OF stream
            LOOP
                stored[i] := found_version;
                stored_by[i] := maker;
            END LOOP;
            IF array_position(stored, NULL) IS NOT NULL THEN
                SELECT made.stored, made.stored_by INTO stored, stored_by
                FROM sequor.make_streams(
                    s_tenant, s_aggregate, s_id, c_command, w_command, w_stream, w_next, stored,
                    stored_by
                ) AS made;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            is_blocked := true;
        END;
        IF is_blocked THEN
            SELECT locked.stored, locked.stored_by INTO stored, stored_by
            FROM sequor.lock_streams_one_by_one(
                wait_ms, s_tenant, s_aggregate, s_id, c_command, w_command, w_stream, w_next
            ) AS locked;
        END IF;
        -- A row that was just made stands for a stream without events.
        versions := stored;
        makers := stored_by;
        FOR i IN 1..cardinality(stored) LOOP
            IF stored[i] < -1 THEN
                versions[i] := 0;
                makers[i] := NULL;
            END IF;
        END LOOP;
    END IF;

    -- Unique values: a lock on each that may change hands.
    IF changes > 0 THEN
        BEGIN
            ignored := sequor.lock_values(
                s_tenant, s_aggregate, s_id, u_stream, u_kind, u_scope, u_value
            );
        EXCEPTION WHEN lock_not_available THEN
            is_held := sequor.lock_values_one_by_one(
                s_tenant, s_aggregate, s_id, u_stream, u_kind, u_scope, u_value
            );
        END;
    END IF;
    ignored := set_config('lock_timeout', waits_before, true);

    -- Judge in order, each on top of those before it.
    FOR i IN 1..commands LOOP
        first_write := next_write;
        WHILE next_write <= writes AND w_command[next_write] = i LOOP
            IF verdicts[i] = 0 THEN
                found_version := versions[w_stream[next_write]];
                IF found_version IS NULL THEN
                    verdicts[i] := 6;
                ELSIF found_version = -1 THEN
                    verdicts[i] := 4;
                ELSIF found_version <> w_expected[next_write]
                    OR (
                        w_after[next_write] IS NOT NULL
                        AND w_after[next_write] IS DISTINCT FROM makers[w_stream[next_write]]
                    )
                THEN
                    verdicts[i] := 2;
                    refusals[i] := jsonb_build_object(
                        'stream', w_stream[next_write], 'actual', found_version
                    );
                END IF;
            END IF;
            next_write := next_write + 1;
        END LOOP;
        IF next_change <= changes AND u_command[next_change] = i THEN
            first_change := next_change;
            WHILE next_change <= changes AND u_command[next_change] = i LOOP
                next_change := next_change + 1;
            END LOOP;
            IF verdicts[i] = 0 AND true = ANY (is_held[first_change:next_change - 1]) THEN
                verdicts[i] := 4;
            ELSIF verdicts[i] = 0 THEN
                refusals[i] := sequor.change_values(
                    s_tenant, s_aggregate, s_id, u_stream[first_change:next_change - 1],
                    u_kind[first_change:next_change - 1], u_scope[first_change:next_change - 1],
                    u_value[first_change:next_change - 1]
                );
                IF refusals[i] IS NOT NULL THEN
                    verdicts[i] := 3;
                END IF;
            END IF;
        END IF;
        IF verdicts[i] = 0 THEN
            FOR j IN first_write..next_write - 1 LOOP
                IF w_next[j] <> w_expected[j] THEN
                    versions[w_stream[j]] := w_next[j];
                    makers[w_stream[j]] := c_command[i];
                END IF;
            END LOOP;
        END IF;
    END LOOP;

    -- What was claimed by those that are refused is let go of.
    IF keyed > 0 AND NOT is_claimed AND verdicts && ARRAY[2, 3, 4, 5, 6]::smallint[] THEN
        DELETE FROM sequor.idempotency_keys AS known
        USING unnest(c_tenant, c_key, c_command, verdicts) AS c (tenant, key, command, verdict)
        WHERE known.tenant_id = c.tenant AND known.key = c.key AND known.command_id = c.command
            AND c.verdict > 1;
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

    -- Versions. A row that was made for a stream without events goes again.
    FOR i IN 1..coalesce(cardinality(stored), 0) LOOP
        IF stored[i] < -1 THEN
            stored[i] := -2 - stored[i];
            vain := vain OR versions[i] = 0;
        END IF;
        changed := changed OR (
            versions[i] > 0 AND (stored[i] <> versions[i] OR stored_by[i] <> makers[i])
        );
    END LOOP;
    IF changed THEN
        UPDATE sequor.streams AS stream SET version = s.version, command_id = s.maker
        FROM unnest(s_tenant, s_aggregate, s_id, stored, stored_by, versions, makers)
            AS s (tenant, aggregate, id, stored, stored_by, version, maker)
        WHERE stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
            AND stream.aggregate_id = s.id AND s.version > 0
            AND (s.stored <> s.version OR s.stored_by <> s.maker);
    END IF;
    IF vain THEN
        DELETE FROM sequor.streams AS stream
        USING unnest(s_tenant, s_aggregate, s_id, versions) AS s (tenant, aggregate, id, version)
        WHERE stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
            AND stream.aggregate_id = s.id AND s.version = 0;
    END IF;

    -- Positions, last of all that is locked.
    FOR i IN 1..cardinality(e_command) LOOP
        IF verdicts[e_command[i]] = 0 THEN
            e_position[i] := nextval('sequor.positions');
            c_position[e_command[i]] := e_position[i];
        END IF;
    END LOOP;
    WITH happened AS (
        INSERT INTO sequor.events (
            tenant_id, aggregate, aggregate_id, version, partition, position, name,
            schema_version, payload, command_id
        )
        SELECT
            s_tenant[e.stream], s_aggregate[e.stream], s_id[e.stream], e.version,
            c_partition[e.command], e.position, e.name, e.schema_version, e.payload::json,
            c_command[e.command]
        FROM unnest(e_command, e_stream, e_version, e_name, e_schema, e_payload, e_position)
            AS e (command, stream, version, name, schema_version, payload, position)
        WHERE e.position IS NOT NULL
    )
    INSERT INTO sequor.commands (
        tenant_id, command_id, key, name, payload, fingerprint, output, actor, correlation_id,
        causation_id, recorded_at, streams, position
    )
    SELECT
        c.tenant, c.command, c.key, c.name, c.payload::json, c.fingerprint, c.output::json,
        c.actor, c.correlation, c.causation, c.recorded_at, c.streams::json, c.position
    FROM unnest(
        c_tenant, c_command, c_key, c_name, c_payload, c_fingerprint, c_output, c_actor,
        c_correlation, c_causation, c_recorded_at, c_streams, c_position, verdicts
    ) AS c (
        tenant, command, key, name, payload, fingerprint, output, actor, correlation, causation,
        recorded_at, streams, position, verdict
    )
    WHERE c.verdict = 0;

    -- Undone together with what was written, so that it tells whether that is still there.
    ignored := set_config('sequor.written', c_command[commands]::text, true);

    FOR i IN 1..commands LOOP
        first_event := next_event;
        WHILE next_event <= cardinality(e_command) AND e_command[next_event] = i LOOP
            next_event := next_event + 1;
        END LOOP;
        IF verdicts[i] NOT IN (1, 5) THEN
            place := i;
            verdict := verdicts[i];
            positions := e_position[first_event:next_event - 1];
            stream := refusals[i] ->> 'stream';
            actual := refusals[i] ->> 'actual';
            scope := refusals[i] ->> 'scope';
            value := refusals[i] ->> 'value';
            holder_aggregate := refusals[i] ->> 'aggregate';
            holder_id := refusals[i] ->> 'id';
            RETURN NEXT;
        END IF;
    END LOOP;
    IF 1 = ANY (verdicts) THEN
        -- A statement of its own, hence a snapshot that sees the winners.
        RETURN QUERY
        SELECT
            c.place::integer, 1::smallint, NULL::bigint[], NULL::integer, NULL::bigint, NULL::text,
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
            c.place::integer, 5::smallint, NULL::bigint[], NULL::integer, NULL::bigint, NULL::text,
            NULL::text, NULL::text, NULL::text, record.*
        FROM unnest(c_tenant, expired) WITH ORDINALITY AS c (tenant, expired, place)
        CROSS JOIN LATERAL sequor.expired_record(c.tenant, c.expired) AS record
        WHERE c.expired IS NOT NULL;
    END IF;
END
$$;

-- After a batch has met a lock: each key by itself, with a short wait, so that one that is held
-- costs its neighbours little. Answers a verdict a command: 0 claimed or without key, 1 known,
-- 4 held by somebody else, 6 not tried, for the time is up.
CREATE FUNCTION sequor.claim_one_by_one(
    wait_ms integer, c_tenant uuid[], c_key text[], c_command uuid[]
) RETURNS smallint[]
LANGUAGE plpgsql
AS $$
DECLARE
    commands constant integer := cardinality(c_command);
    verdicts smallint[] := array_fill(0::smallint, ARRAY[commands]);
    until constant timestamptz := clock_timestamp() + make_interval(secs => wait_ms / 1000.0);
    place integer;
BEGIN
    IF commands = 1 THEN
        -- It has waited for as long as it may.
        RETURN ARRAY[4::smallint];
    END IF;
    PERFORM set_config('lock_timeout', '1', true);
    FOR place IN
        SELECT c.place
        FROM unnest(c_tenant, c_key) WITH ORDINALITY AS c (tenant, key, place)
        WHERE c.key IS NOT NULL
        ORDER BY c.tenant, c.key COLLATE "C"
    LOOP
        IF clock_timestamp() > until THEN
            verdicts[place] := 6;
            CONTINUE;
        END IF;
        BEGIN
            INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
            VALUES (c_tenant[place], c_key[place], c_command[place])
            ON CONFLICT (tenant_id, key) DO NOTHING;
            IF NOT FOUND THEN
                verdicts[place] := 1;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            verdicts[place] := 4;
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', wait_ms::text, true);
    RETURN verdicts;
END
$$;

-- After a batch has met a lock: streams that exist are locked where nobody holds them (-1 for the
-- others), and those that do not are made with a short wait for each (NULL when the time was up).
CREATE FUNCTION sequor.lock_streams_one_by_one(
    wait_ms integer, s_tenant uuid[], s_aggregate text[], s_id text[], c_command uuid[],
    w_command integer[], w_stream integer[], w_next bigint[],
    OUT stored bigint[], OUT stored_by uuid[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    streams constant integer := cardinality(s_id);
    until constant timestamptz := clock_timestamp() + make_interval(secs => wait_ms / 1000.0);
    hoped bigint[] := array_fill(0::bigint, ARRAY[streams]);
    hoped_by uuid[] := array_fill('00000000-0000-0000-0000-000000000000'::uuid, ARRAY[streams]);
    i integer;
    version bigint;
    maker uuid;
BEGIN
    stored := array_fill(NULL::bigint, ARRAY[cardinality(s_id)]);
    stored_by := array_fill(NULL::uuid, ARRAY[cardinality(s_id)]);
    FOR i, version, maker IN
        SELECT s.place, stream.version, stream.command_id
        FROM unnest(s_tenant, s_aggregate, s_id)
            WITH ORDINALITY AS s (tenant, aggregate, id, place)
        JOIN sequor.streams AS stream
            ON stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
            AND stream.aggregate_id = s.id
        ORDER BY s.place
        FOR UPDATE OF stream SKIP LOCKED
    LOOP
        stored[i] := version;
        stored_by[i] := maker;
    END LOOP;
    -- What is there and was not locked is somebody else's now.
    FOR i IN
        SELECT s.place
        FROM unnest(s_tenant, s_aggregate, s_id, stored)
            WITH ORDINALITY AS s (tenant, aggregate, id, stored, place)
        JOIN sequor.streams AS stream
            ON stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
            AND stream.aggregate_id = s.id
        WHERE s.stored IS NULL
    LOOP
        stored[i] := -1;
    END LOOP;
    PERFORM set_config('lock_timeout', '1', true);
    FOR i IN 1..cardinality(w_stream) LOOP
        hoped[w_stream[i]] := w_next[i];
        hoped_by[w_stream[i]] := c_command[w_command[i]];
    END LOOP;
    FOR i IN 1..cardinality(s_id) LOOP
        IF stored[i] IS NULL AND clock_timestamp() < until THEN
            stored[i] := -1;
            BEGIN
                INSERT INTO sequor.streams (tenant_id, aggregate, aggregate_id, version, command_id)
                VALUES (s_tenant[i], s_aggregate[i], s_id[i], hoped[i], hoped_by[i])
                ON CONFLICT (tenant_id, aggregate, aggregate_id) DO NOTHING;
                IF FOUND THEN
                    stored[i] := -2 - hoped[i];
                    stored_by[i] := hoped_by[i];
                END IF;
            EXCEPTION WHEN lock_not_available THEN
                NULL;
            END;
        END IF;
    END LOOP;
END
$$;

-- Makes the rows of streams that do not exist, so that nobody else can,
-- and answers with -2 - v for a row of version v, which its stream will have if everything in the
-- batch succeeds. Where a rival has made one meanwhile, that one is locked if nobody holds it (-1
-- else).
CREATE FUNCTION sequor.make_streams(
    s_tenant uuid[], s_aggregate text[], s_id text[], c_command uuid[], w_command integer[],
    w_stream integer[], w_next bigint[], INOUT stored bigint[], INOUT stored_by uuid[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    streams constant integer := cardinality(s_id);
    hoped bigint[] := array_fill(0::bigint, ARRAY[streams]);
    hoped_by uuid[] := array_fill('00000000-0000-0000-0000-000000000000'::uuid, ARRAY[streams]);
    made bigint;
    i integer;
    version bigint;
    maker uuid;
BEGIN
    FOR i IN 1..cardinality(w_stream) LOOP
        hoped[w_stream[i]] := w_next[i];
        hoped_by[w_stream[i]] := c_command[w_command[i]];
    END LOOP;
    INSERT INTO sequor.streams (tenant_id, aggregate, aggregate_id, version, command_id)
    SELECT s.tenant, s.aggregate, s.id, s.hoped, s.hoped_by
    FROM unnest(s_tenant, s_aggregate, s_id, stored, hoped, hoped_by)
        WITH ORDINALITY AS s (tenant, aggregate, id, stored, hoped, hoped_by, place)
    WHERE s.stored IS NULL
    ORDER BY s.place
    ON CONFLICT (tenant_id, aggregate, aggregate_id) DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made = cardinality(array_positions(stored, NULL)) THEN
        FOR i IN 1..streams LOOP
            IF stored[i] IS NULL THEN
                stored[i] := -2 - hoped[i];
                stored_by[i] := hoped_by[i];
            END IF;
        END LOOP;
        RETURN;
    END IF;
    -- What is there now is ours if a command of ours has made it, else a rival's. One command alone
    -- waits for it; a batch does not, since it exists by now, and the order of locks is past that.
    IF cardinality(c_command) = 1 THEN
        PERFORM FROM unnest(s_tenant, s_aggregate, s_id, stored)
            AS s (tenant, aggregate, id, stored)
        JOIN sequor.streams AS stream
            ON stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
            AND stream.aggregate_id = s.id
        WHERE s.stored IS NULL
        FOR UPDATE OF stream;
    END IF;
    FOR i, version, maker IN
        SELECT s.place, stream.version, stream.command_id
        FROM unnest(s_tenant, s_aggregate, s_id, stored)
            WITH ORDINALITY AS s (tenant, aggregate, id, stored, place)
        JOIN sequor.streams AS stream
            ON stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
            AND stream.aggregate_id = s.id
        WHERE s.stored IS NULL
        ORDER BY s.place
        FOR UPDATE OF stream SKIP LOCKED
    LOOP
        stored[i] := CASE WHEN maker = hoped_by[i] THEN -2 - version ELSE version END;
        stored_by[i] := maker;
    END LOOP;
    -- Held by a rival, or gone again: not ours now.
    stored := array_replace(stored, NULL, -1::bigint);
END
$$;

REVOKE ALL ON FUNCTION
    sequor.commit, sequor.claim_one_by_one, sequor.lock_streams_one_by_one, sequor.make_streams
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequor.commit TO sequor_app;
