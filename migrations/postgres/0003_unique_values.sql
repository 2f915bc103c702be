-- Unique values: locked in one order for everybody, then released and claimed command by command.
-- Called by the commit only.

-- A lock on every value that the batch may take or let go of, in one order for everybody. Without
-- it two swaps of values would wait for each other's deletes.
CREATE FUNCTION sequor.lock_values(
    s_tenant uuid[], s_aggregate text[], s_id text[], u_stream integer[], u_kind smallint[],
    u_scope text[], u_value text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(touched.lock_key)
    FROM (
        SELECT DISTINCT
            hashtextextended(format('sequor:unique:%s:%s:%s', t.tenant, t.scope, t.value), 0)
                AS lock_key
        FROM (
            SELECT s_tenant[u.stream] AS tenant, u.scope, u.value
            FROM unnest(u_stream, u_kind, u_scope, u_value) AS u (stream, kind, scope, value)
            WHERE u.kind = 0
            UNION ALL
            SELECT held.tenant_id, held.scope, held.value
            FROM (SELECT DISTINCT place FROM unnest(u_stream) AS u (place)) AS u
            JOIN sequor.unique_keys AS held
                ON held.tenant_id = s_tenant[u.place] AND held.aggregate = s_aggregate[u.place]
                AND held.aggregate_id = s_id[u.place]
        ) AS t
        ORDER BY lock_key
    ) AS touched;
END
$$;

-- After a batch has met a lock: each value by itself, without waiting. Answers for each change
-- whether somebody else holds a value that it touches.
CREATE FUNCTION sequor.lock_values_one_by_one(
    s_tenant uuid[], s_aggregate text[], s_id text[], u_stream integer[], u_kind smallint[],
    u_scope text[], u_value text[]
) RETURNS boolean[]
LANGUAGE plpgsql
AS $$
DECLARE
    is_held boolean[] := array_fill(false, ARRAY[cardinality(u_stream)]);
    place integer;
    lock_key bigint;
BEGIN
    FOR place, lock_key IN
        SELECT u.place, hashtextextended(format('sequor:unique:%s:%s:%s', t.tenant, t.scope, t.value), 0)
        FROM unnest(u_stream, u_kind, u_scope, u_value)
            WITH ORDINALITY AS u (stream, kind, scope, value, place)
        CROSS JOIN LATERAL (
            SELECT s_tenant[u.stream] AS tenant, u.scope, u.value WHERE u.kind = 0
            UNION ALL
            SELECT held.tenant_id, held.scope, held.value
            FROM sequor.unique_keys AS held
            WHERE held.tenant_id = s_tenant[u.stream] AND held.aggregate = s_aggregate[u.stream]
                AND held.aggregate_id = s_id[u.stream]
        ) AS t
    LOOP
        is_held[place] := is_held[place] OR NOT pg_try_advisory_xact_lock(lock_key);
    END LOOP;
    RETURN is_held;
END
$$;

-- What one command does to unique values: all releases, then all claims. Answers NULL, or the
-- value that is taken with its holder; then nothing was changed. Kinds: 0 hold, 1 release what is
-- held in the scope, 2 release all.
CREATE FUNCTION sequor.change_values(
    s_tenant uuid[], s_aggregate text[], s_id text[], u_stream integer[], u_kind smallint[],
    u_scope text[], u_value text[]
) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    place integer;
    i integer;
    before jsonb;
    after jsonb;
    released jsonb := '[]';
    claimed jsonb := '[]';
    taken jsonb;
BEGIN
    FOR place IN SELECT DISTINCT u.place FROM unnest(u_stream) AS u (place) ORDER BY u.place LOOP
        SELECT coalesce(jsonb_object_agg(held.scope, held.value), '{}') INTO before
        FROM sequor.unique_keys AS held
        WHERE held.tenant_id = s_tenant[place] AND held.aggregate = s_aggregate[place]
            AND held.aggregate_id = s_id[place];
        after := before;
        FOR i IN 1..cardinality(u_stream) LOOP
            IF u_stream[i] = place THEN
                after := CASE u_kind[i]
                    WHEN 0 THEN after || jsonb_build_object(u_scope[i], u_value[i])
                    WHEN 1 THEN after - u_scope[i]
                    ELSE '{}'
                END;
            END IF;
        END LOOP;
        SELECT released || coalesce(
            jsonb_agg(jsonb_build_object('place', place, 'scope', b.key, 'value', b.value)), '[]'
        ) INTO released
        FROM jsonb_each_text(before) AS b
        WHERE after ->> b.key IS DISTINCT FROM b.value;
        SELECT claimed || coalesce(
            jsonb_agg(jsonb_build_object('place', place, 'scope', a.key, 'value', a.value)), '[]'
        ) INTO claimed
        FROM jsonb_each_text(after) AS a
        WHERE before ->> a.key IS DISTINCT FROM a.value;
    END LOOP;
    taken := sequor.taken_value(s_tenant, s_aggregate, s_id, released, claimed);
    IF taken IS NOT NULL THEN
        RETURN taken;
    END IF;
    DELETE FROM sequor.unique_keys AS held
    USING jsonb_to_recordset(released) AS r (place integer, scope text, value text)
    WHERE held.tenant_id = s_tenant[r.place] AND held.scope = r.scope AND held.value = r.value;
    INSERT INTO sequor.unique_keys (tenant_id, scope, value, aggregate, aggregate_id)
    SELECT s_tenant[c.place], c.scope, c.value, s_aggregate[c.place], s_id[c.place]
    FROM jsonb_to_recordset(claimed) AS c (place integer, scope text, value text);
    RETURN NULL;
END
$$;

-- The first claim, by scope and value, that cannot be met: another aggregate of the same command
-- wants the value as well, or holds it and does not let go.
CREATE FUNCTION sequor.taken_value(
    s_tenant uuid[], s_aggregate text[], s_id text[], released jsonb, claimed jsonb
) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    taken jsonb;
BEGIN
    WITH c AS (
        SELECT
            wanted.*,
            first_value(wanted.place) OVER (
                PARTITION BY wanted.scope, wanted.value ORDER BY wanted.place
            ) AS rival
        FROM jsonb_to_recordset(claimed) AS wanted (place integer, scope text, value text)
    )
    SELECT jsonb_build_object(
        'scope', c.scope, 'value', c.value,
        'aggregate', CASE WHEN c.rival <> c.place THEN s_aggregate[c.rival] ELSE held.aggregate END,
        'id', CASE WHEN c.rival <> c.place THEN s_id[c.rival] ELSE held.aggregate_id END
    ) INTO taken
    FROM c
    LEFT JOIN sequor.unique_keys AS held
        ON held.tenant_id = s_tenant[c.place] AND held.scope = c.scope AND held.value = c.value
        AND NOT EXISTS (
            SELECT FROM jsonb_to_recordset(released) AS r (place integer, scope text, value text)
            WHERE r.scope = c.scope AND r.value = c.value
                AND s_aggregate[r.place] = held.aggregate AND s_id[r.place] = held.aggregate_id
        )
    WHERE c.rival <> c.place OR held.tenant_id IS NOT NULL
    ORDER BY c.scope COLLATE "C", c.value COLLATE "C", c.place
    LIMIT 1;
    RETURN taken;
END
$$;

REVOKE ALL ON FUNCTION
    sequor.lock_values, sequor.lock_values_one_by_one, sequor.change_values, sequor.taken_value
    FROM PUBLIC;
