-- What becomes of a batch that does not go straight: see `sequor.commit` in 0004_commit.sql, which
-- calls all of these, and holds the locks that come before theirs.

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
    wait_ms integer, s_tenant uuid[], s_aggregate text[], s_id text[], s_next bigint[],
    s_maker uuid[], OUT stored bigint[], OUT stored_by uuid[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    until constant timestamptz := clock_timestamp() + make_interval(secs => wait_ms / 1000.0);
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
    FOR i IN 1..cardinality(s_id) LOOP
        IF stored[i] IS NULL AND clock_timestamp() < until THEN
            stored[i] := -1;
            BEGIN
                INSERT INTO sequor.streams (tenant_id, aggregate, aggregate_id, version, command_id)
                VALUES (s_tenant[i], s_aggregate[i], s_id[i], s_next[i], s_maker[i])
                ON CONFLICT (tenant_id, aggregate, aggregate_id) DO NOTHING;
                IF FOUND THEN
                    stored[i] := -2 - s_next[i];
                    stored_by[i] := s_maker[i];
                END IF;
            EXCEPTION WHEN lock_not_available THEN
                NULL;
            END;
        END IF;
    END LOOP;
END
$$;

-- Of each stream its version and who made it. Those at `places` exist. The rows of the others are
-- made, so that nobody else can, with what they will be if everything in the batch succeeds: -2 - v
-- stands for a row of version v that was made so. Where a rival has made one meanwhile, that one is
-- locked if nobody holds it (-1 else).
CREATE FUNCTION sequor.make_streams(
    s_tenant uuid[], s_aggregate text[], s_id text[], s_next bigint[], s_maker uuid[],
    is_alone boolean, places integer[], existing bigint[], existing_by uuid[],
    OUT stored bigint[], OUT stored_by uuid[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    streams constant integer := cardinality(s_id);
    made bigint;
    i integer;
    version bigint;
    maker uuid;
BEGIN
    stored := array_fill(NULL::bigint, ARRAY[streams]);
    stored_by := array_fill(NULL::uuid, ARRAY[streams]);
    FOR i IN 1..coalesce(cardinality(places), 0) LOOP
        stored[places[i]] := existing[i];
        stored_by[places[i]] := existing_by[i];
    END LOOP;
    IF array_position(stored, NULL) IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO sequor.streams (tenant_id, aggregate, aggregate_id, version, command_id)
    SELECT s.tenant, s.aggregate, s.id, s.next, s.maker
    FROM unnest(s_tenant, s_aggregate, s_id, s_next, s_maker, stored)
        WITH ORDINALITY AS s (tenant, aggregate, id, next, maker, stored, place)
    WHERE s.stored IS NULL
    ORDER BY s.place
    ON CONFLICT (tenant_id, aggregate, aggregate_id) DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made = cardinality(array_positions(stored, NULL)) THEN
        FOR i IN 1..streams LOOP
            IF stored[i] IS NULL THEN
                stored[i] := -2 - s_next[i];
                stored_by[i] := s_maker[i];
            END IF;
        END LOOP;
        RETURN;
    END IF;
    -- What is there now is ours if a command of ours has made it, else a rival's. One command alone
    -- waits for it; a batch does not, since it exists by now, and the order of locks is past that.
    IF is_alone THEN
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
        stored[i] := CASE WHEN maker = s_maker[i] THEN -2 - version ELSE version END;
        stored_by[i] := maker;
    END LOOP;
    -- Held by a rival, or gone again: not ours now.
    stored := array_replace(stored, NULL, -1::bigint);
END
$$;

-- Judges the commands of a batch in order, each on top of those before it, and changes the unique
-- values of those that pass: behind a lock on each that may change hands. Takes the verdicts that are
-- known already, and answers with all of them (see `sequor.commit`), with what is to be said of those
-- that are refused, and with each stream's version after the batch and the command that made it.
CREATE FUNCTION sequor.judge(
    c_command uuid[], s_tenant uuid[], s_aggregate text[], s_id text[],
    w_command integer[], w_stream integer[], w_expected bigint[], w_after uuid[], w_next bigint[],
    u_command integer[], u_stream integer[], u_kind smallint[], u_scope text[], u_value text[],
    stored bigint[], stored_by uuid[], INOUT verdicts smallint[],
    OUT versions bigint[], OUT makers uuid[], OUT refusals jsonb[]
)
LANGUAGE plpgsql
AS $$
DECLARE
    writes constant integer := cardinality(w_command);
    changes constant integer := cardinality(u_command);
    -- Of each change, after a lock was met: whether somebody else holds what it touches.
    is_held boolean[];
    next_write integer := 1;
    next_change integer := 1;
    first_write integer;
    first_change integer;
    version bigint;
    i integer;
    j integer;
BEGIN
    refusals := array_fill(NULL::jsonb, ARRAY[cardinality(c_command)]);
    -- A row that was just made stands for a stream without events.
    versions := stored;
    makers := stored_by;
    FOR i IN 1..coalesce(cardinality(stored), 0) LOOP
        IF stored[i] < -1 THEN
            versions[i] := 0;
            makers[i] := NULL;
        END IF;
    END LOOP;
    IF changes > 0 THEN
        BEGIN
            PERFORM sequor.lock_values(
                s_tenant, s_aggregate, s_id, u_stream, u_kind, u_scope, u_value
            );
        EXCEPTION WHEN lock_not_available THEN
            is_held := sequor.lock_values_one_by_one(
                s_tenant, s_aggregate, s_id, u_stream, u_kind, u_scope, u_value
            );
        END;
    END IF;
    FOR i IN 1..cardinality(c_command) LOOP
        first_write := next_write;
        WHILE next_write <= writes AND w_command[next_write] = i LOOP
            IF verdicts[i] = 0 THEN
                version := versions[w_stream[next_write]];
                IF version IS NULL THEN
                    verdicts[i] := 6;
                ELSIF version = -1 THEN
                    verdicts[i] := 4;
                ELSIF version <> w_expected[next_write]
                    OR (
                        w_after[next_write] IS NOT NULL
                        AND w_after[next_write] IS DISTINCT FROM makers[w_stream[next_write]]
                    )
                THEN
                    verdicts[i] := 2;
                    refusals[i] := jsonb_build_object(
                        'stream', w_stream[next_write], 'actual', version
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
END
$$;

-- Writes the versions that a batch ends with. A row that was made for a stream that is still without
-- events goes again.
CREATE FUNCTION sequor.write_versions(
    s_tenant uuid[], s_aggregate text[], s_id text[], stored bigint[], stored_by uuid[],
    versions bigint[], makers uuid[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    i integer;
BEGIN
    FOR i IN 1..coalesce(cardinality(stored), 0) LOOP
        IF stored[i] < -1 THEN
            stored[i] := -2 - stored[i];
        END IF;
    END LOOP;
    UPDATE sequor.streams AS stream SET version = s.version, command_id = s.maker
    FROM unnest(s_tenant, s_aggregate, s_id, stored, stored_by, versions, makers)
        AS s (tenant, aggregate, id, stored, stored_by, version, maker)
    WHERE stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
        AND stream.aggregate_id = s.id AND s.version > 0
        AND (s.stored <> s.version OR s.stored_by <> s.maker);
    IF 0 = ANY (versions) THEN
        DELETE FROM sequor.streams AS stream
        USING unnest(s_tenant, s_aggregate, s_id, versions) AS s (tenant, aggregate, id, version)
        WHERE stream.tenant_id = s.tenant AND stream.aggregate = s.aggregate
            AND stream.aggregate_id = s.id AND s.version = 0;
    END IF;
END
$$;

REVOKE ALL ON FUNCTION
    sequor.claim_one_by_one, sequor.lock_streams_one_by_one, sequor.make_streams, sequor.judge,
    sequor.write_versions
    FROM PUBLIC;
