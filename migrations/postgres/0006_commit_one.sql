-- How one command becomes true that has no neighbours.
--
-- Rights and plans are as 0002_claim_and_read.sql says.

-- One command on one stream, without unique values: what most commands are. The same as a batch of
-- one, in as few statements as it takes: 3 on a stream that exists, 4 on a new one. It waits for no
-- lock any longer than `wait_ms` (55P03 then), since it has no neighbours.
CREATE FUNCTION sequor.commit_one(
    wait_ms integer, lock_key bigint,
    tenant uuid, partition_number smallint, command uuid, wanted text, command_name text,
    payload text, fingerprint bytea, output text, actor text, correlation uuid, causation uuid,
    recorded timestamptz, streams_after text,
    aggregate_name text, id text, expected bigint, made_by uuid,
    e_name text[], e_schema integer[], e_payload text[]
)
RETURNS TABLE (
    verdicts smallint[], positions bigint[], place integer, stream integer, actual bigint,
    scope text, value text, holder_aggregate text, holder_id text,
    command_id uuid, name text, known_fingerprint bytea, known_actor text, recorded_at timestamptz,
    streams text, known_output text, "position" bigint, state smallint, lease_until timestamptz,
    fence bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    events constant integer := cardinality(e_name);
    ignored text;
    archived_to timestamptz;
    expired uuid;
    found_version bigint;
    maker uuid;
    drawn bigint[];
    i integer;
BEGIN
    ignored := sequor.check_commit(NULL, NULL, NULL);
    ignored := set_config('lock_timeout', wait_ms::text, true);
    ignored := pg_advisory_xact_lock_shared(lock_key);
    place := 1;
    verdicts := '{0}';
    IF wanted IS NOT NULL THEN
        INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
        VALUES (tenant, wanted, command)
        ON CONFLICT (tenant_id, key) DO NOTHING;
        IF NOT FOUND THEN
            -- A statement of its own, hence a snapshot that sees the winner.
            RETURN QUERY
            SELECT
                '{1}'::smallint[], NULL::bigint[], 1, NULL::integer, NULL::bigint, NULL::text,
                NULL::text, NULL::text, NULL::text,
                known.command_id, known.name, known.fingerprint, known.actor, known.recorded_at,
                known.streams::text, known.output::text, known.position, key.state,
                key.lease_until, key.fence
            FROM sequor.idempotency_keys AS key
            LEFT JOIN sequor.commands AS known
                ON known.tenant_id = key.tenant_id AND known.command_id = key.command_id
            WHERE key.tenant_id = tenant AND key.key = wanted;
            RETURN;
        END IF;
    END IF;

    -- The stream, with what was archived while the claim waited.
    UPDATE sequor.streams AS s SET version = s.version + events, command_id = command
    WHERE s.tenant_id = tenant AND s.aggregate = aggregate_name AND s.aggregate_id = id
        AND s.version = expected AND (made_by IS NULL OR s.command_id = made_by)
    RETURNING (SELECT r.archived_to FROM sequor.retention AS r WHERE r.id = 1) INTO archived_to;
    IF NOT FOUND AND expected = 0 AND made_by IS NULL THEN
        INSERT INTO sequor.streams (tenant_id, aggregate, aggregate_id, version, command_id)
        VALUES (tenant, aggregate_name, id, events, command)
        ON CONFLICT (tenant_id, aggregate, aggregate_id) DO NOTHING
        RETURNING (SELECT r.archived_to FROM sequor.retention AS r WHERE r.id = 1) INTO archived_to;
    END IF;
    IF NOT FOUND THEN
        IF wanted IS NOT NULL AND sequor.archived(tenant, wanted) IS NOT NULL THEN
            RAISE EXCEPTION 'the key is archived' USING ERRCODE = 'SQ005';
        END IF;
        verdicts := '{2}';
        stream := 1;
        actual := coalesce((
            SELECT s.version FROM sequor.streams AS s
            WHERE s.tenant_id = tenant AND s.aggregate = aggregate_name AND s.aggregate_id = id
        ), 0);
        DELETE FROM sequor.idempotency_keys AS key
        WHERE key.tenant_id = tenant AND key.key = wanted AND key.command_id = command;
        RETURN NEXT;
        RETURN;
    END IF;
    IF archived_to IS NOT NULL AND wanted IS NOT NULL
        AND NOT sequor.is_young(wanted, archived_to)
    THEN
        expired := sequor.archived(tenant, wanted);
        IF expired IS NOT NULL THEN
            -- Nothing was promised yet, so all of it goes: the caller asks for the record.
            RAISE EXCEPTION 'the key is archived' USING ERRCODE = 'SQ005';
        END IF;
    END IF;

    -- Positions, last of all that is locked.
    FOR i IN 1..events LOOP
        drawn[i] := nextval('sequor.positions');
    END LOOP;
    WITH happened AS (
        INSERT INTO sequor.events (
            tenant_id, aggregate, aggregate_id, version, partition, position, name,
            schema_version, payload, command_id
        )
        SELECT
            tenant, aggregate_name, id, expected + e.place, partition_number, e.position, e.name,
            e.schema_version, e.payload::json, command
        FROM unnest(e_name, e_schema, e_payload, drawn)
            WITH ORDINALITY AS e (name, schema_version, payload, position, place)
    )
    INSERT INTO sequor.commands (
        tenant_id, command_id, key, name, payload, fingerprint, output, actor, correlation_id,
        causation_id, recorded_at, streams, position
    )
    VALUES (
        tenant, command, wanted, command_name, payload::json, fingerprint, output::json, actor,
        correlation, causation, recorded, streams_after::json, drawn[events]
    );
    positions := drawn;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION sequor.commit_one FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequor.commit_one TO sequor_app;
