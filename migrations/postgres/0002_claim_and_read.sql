-- How keys are claimed, and how history is read.
--
-- SECURITY DEFINER with a fixed search_path: callers own nothing and insert nothing. Sequential scans
-- and hash joins are off inside, so that a plan made while a table was empty is the right one when it
-- has grown. OFFSET 0 keeps a command's row to be looked up by its whole key: while the table is empty,
-- reading all commands of the tenant looks as cheap. Nothing here is granted to everybody.

-- Refuses to work for another tenant than the transaction speaks for; for none, where it speaks for
-- nobody and yet runs as `sequor_app`, as user SQL does.
CREATE FUNCTION sequor.check_tenant(wanted uuid[]) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    speaks_for uuid := sequor.tenant();
BEGIN
    IF (speaks_for IS NOT NULL AND (speaks_for = ALL (wanted)) IS NOT TRUE)
        OR (speaks_for IS NULL AND current_setting('role') = 'sequor_app')
    THEN
        RAISE EXCEPTION 'the transaction speaks for another tenant' USING ERRCODE = 'SQ001';
    END IF;
END
$$;

-- Refuses any level but READ COMMITTED: at the others, whoever loses a race for a key is not
-- answered but thrown out.
CREATE FUNCTION sequor.check_isolation() RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'sequor works at READ COMMITTED' USING
            ERRCODE = 'SQ002',
            HINT = 'ALTER ROLE … SET default_transaction_isolation = ''read committed''';
    END IF;
END
$$;

-- Refuses to go on where the transaction does not speak for this tenant as `sequor_app` (NULL: for
-- any, as the bus itself), or where what it wrote last is not there: somebody ended it, undid some of
-- it, or changed the settings.
CREATE FUNCTION sequor.check_open(tenant uuid, written uuid) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF sequor.tenant() IS DISTINCT FROM tenant
        OR (tenant IS NOT NULL AND current_setting('role') <> 'sequor_app')
        OR nullif(current_setting('sequor.written', true), '')::uuid IS DISTINCT FROM written
    THEN
        RAISE EXCEPTION 'the transaction was ended, undone in part, or its settings changed' USING
            ERRCODE = 'SQ003';
    END IF;
END
$$;

-- All three at once, as every commit needs them: one expression where all is well.
CREATE FUNCTION sequor.check_commit(tenant uuid, written uuid, wanted uuid[]) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF current_setting('transaction_isolation') = 'read committed'
        AND sequor.tenant() IS NOT DISTINCT FROM tenant
        AND (current_setting('role') = 'sequor_app') = (tenant IS NOT NULL)
        AND nullif(current_setting('sequor.written', true), '')::uuid IS NOT DISTINCT FROM written
        AND (tenant IS NULL OR tenant = ALL (wanted))
    THEN
        RETURN;
    END IF;
    PERFORM sequor.check_isolation();
    PERFORM sequor.check_open(tenant, written);
    PERFORM sequor.check_tenant(wanted);
END
$$;

-- When a key was made, if it is a UUIDv7 and so tells.
CREATE FUNCTION sequor.key_time(key text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN key ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
    THEN to_timestamp(('x' || substr(key, 1, 8) || substr(key, 10, 4))::bit(48)::bigint / 1000.0)
END;

-- Whether a key tells by itself that it is none of those that were archived: it was made later than
-- all of them. (`archived_to` lies a week before the latest of their own times, see `reap_keys`, for
-- clocks of callers may be ahead.)
CREATE FUNCTION sequor.is_young(key text, archived_to timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(sequor.key_time(key) > archived_to + interval '7 days', false);

-- The command under an archived key; NULL when the key is not archived. Costs nothing as long as
-- nothing was archived, and little for keys that tell their age.
CREATE FUNCTION sequor.archived(tenant uuid, wanted text) RETURNS uuid
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    archived_to timestamptz := (SELECT r.archived_to FROM sequor.retention AS r WHERE r.id = 1);
BEGIN
    IF archived_to IS NULL OR sequor.is_young(wanted, archived_to) THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT archive.command_id FROM sequor.idempotency_keys_archive AS archive
        WHERE archive.tenant_id = tenant AND archive.key = wanted
        LIMIT 1
    );
END
$$;

-- What is remembered of a command whose key is archived: its record, in state 2.
CREATE FUNCTION sequor.expired_record(tenant uuid, expired uuid)
RETURNS TABLE (
    command_id uuid, name text, fingerprint bytea, actor text, recorded_at timestamptz,
    streams text, output text, "position" bigint, state smallint, lease_until timestamptz,
    fence bigint
)
LANGUAGE sql STABLE
AS $$
    SELECT
        command.command_id, command.name, command.fingerprint, command.actor, command.recorded_at,
        command.streams::text, command.output::text, command.position, 2::smallint,
        NULL::timestamptz, NULL::bigint
    FROM sequor.commands AS command
    WHERE command.tenant_id = tenant AND command.command_id = expired
$$;

-- Claims a key for this transaction, or answers with what is remembered under it. Waits at most so
-- long for a rival that has claimed it and not ended yet (55P03 then).
CREATE FUNCTION sequor.claim(wait_ms integer, tenant uuid, wanted text)
RETURNS TABLE (
    command_id uuid, name text, fingerprint bytea, actor text, recorded_at timestamptz,
    streams text, output text, "position" bigint, state smallint, lease_until timestamptz,
    fence bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    waits_before text := current_setting('lock_timeout');
    is_fresh boolean;
    expired uuid;
BEGIN
    PERFORM sequor.check_isolation();
    PERFORM sequor.check_tenant(ARRAY[tenant]);
    PERFORM set_config('lock_timeout', wait_ms::text, true);
    INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
    VALUES (tenant, wanted, '00000000-0000-0000-0000-000000000000')
    ON CONFLICT (tenant_id, key) DO NOTHING;
    is_fresh := FOUND;
    PERFORM set_config('lock_timeout', waits_before, true);
    IF is_fresh THEN
        expired := sequor.archived(tenant, wanted);
        IF expired IS NOT NULL THEN
            DELETE FROM sequor.idempotency_keys WHERE tenant_id = tenant AND key = wanted;
            RETURN QUERY SELECT * FROM sequor.expired_record(tenant, expired);
        END IF;
        RETURN;
    END IF;
    -- A statement of its own, hence a snapshot that sees the winner.
    RETURN QUERY
    SELECT
        command.command_id, command.name, command.fingerprint, command.actor, command.recorded_at,
        command.streams::text, command.output::text, command.position, key.state, key.lease_until,
        key.fence
    FROM sequor.idempotency_keys AS key
    LEFT JOIN LATERAL (
        SELECT * FROM sequor.commands AS command
        WHERE command.tenant_id = tenant AND command.command_id = key.command_id
        OFFSET 0
    ) AS command ON true
    WHERE key.tenant_id = tenant AND key.key = wanted;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the key was let go of meanwhile' USING ERRCODE = '55P03';
    END IF;
END
$$;

-- A claim under which nothing was written is forgotten when its transaction commits, whoever made
-- it. Only claims write zeros, so that no other row pays for this.
CREATE FUNCTION sequor.forget_vain_claim() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM sequor.idempotency_keys
    WHERE tenant_id = NEW.tenant_id AND key = NEW.key
        AND command_id = '00000000-0000-0000-0000-000000000000';
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER forget_vain_claim
    AFTER INSERT ON sequor.idempotency_keys DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.command_id = '00000000-0000-0000-0000-000000000000')
    EXECUTE FUNCTION sequor.forget_vain_claim();

-- Lets go of a key that this transaction has claimed and under which it has written nothing.
CREATE FUNCTION sequor.unclaim(tenant uuid, claimed text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    PERFORM sequor.check_tenant(ARRAY[tenant]);
    DELETE FROM sequor.idempotency_keys
    WHERE tenant_id = tenant AND key = claimed
        AND command_id = '00000000-0000-0000-0000-000000000000';
END
$$;

-- Locks a stream for the rest of the transaction, if it exists.
CREATE FUNCTION sequor.hold(wait_ms integer, tenant uuid, wanted_aggregate text, wanted_id text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    waits_before constant text := current_setting('lock_timeout');
BEGIN
    PERFORM sequor.check_tenant(ARRAY[tenant]);
    PERFORM set_config('lock_timeout', wait_ms::text, true);
    PERFORM FROM sequor.streams AS stream
    WHERE stream.tenant_id = tenant AND stream.aggregate = wanted_aggregate
        AND stream.aggregate_id = wanted_id
    FOR UPDATE;
    PERFORM set_config('lock_timeout', waits_before, true);
END
$$;

-- The record under a key; where the key is not known, the events of a stream after a version, in
-- order. STABLE: all of it under the snapshot of one statement, so that a state which contains a
-- command's effect is never shown beside "the key is not known". LEFT, so that a row whose command
-- is gone shows as damage.
CREATE FUNCTION sequor.history(
    tenant uuid, wanted text, wanted_aggregate text, wanted_id text, after bigint
)
RETURNS TABLE (
    is_event boolean, command_id uuid, name text, fingerprint bytea, actor text,
    recorded_at timestamptz, streams text, content text, "position" bigint, state smallint,
    lease_until timestamptz, fence bigint, version bigint, schema_version integer, key text,
    correlation_id uuid, causation_id uuid
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    expired uuid;
BEGIN
    PERFORM sequor.check_tenant(ARRAY[tenant]);
    IF wanted IS NOT NULL THEN
        RETURN QUERY
        SELECT
            false, command.command_id, command.name, command.fingerprint, command.actor,
            command.recorded_at, command.streams::text, command.output::text, command.position,
            known.state, known.lease_until, known.fence, NULL::bigint, NULL::integer, NULL::text,
            NULL::uuid, NULL::uuid
        FROM sequor.idempotency_keys AS known
        LEFT JOIN LATERAL (
            SELECT * FROM sequor.commands AS command
            WHERE command.tenant_id = tenant AND command.command_id = known.command_id
            OFFSET 0
        ) AS command ON true
        WHERE known.tenant_id = tenant AND known.key = wanted
            AND known.command_id <> '00000000-0000-0000-0000-000000000000';
        IF FOUND THEN
            RETURN;
        END IF;
        expired := sequor.archived(tenant, wanted);
        IF expired IS NOT NULL THEN
            RETURN QUERY
            SELECT
                false, record.command_id, record.name, record.fingerprint, record.actor,
                record.recorded_at, record.streams, record.output, record.position, record.state,
                record.lease_until, record.fence, NULL::bigint, NULL::integer, NULL::text,
                NULL::uuid, NULL::uuid
            FROM sequor.expired_record(tenant, expired) AS record;
            RETURN;
        END IF;
    END IF;
    IF wanted_id IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT
        true, command.command_id, event.name, NULL::bytea, command.actor, command.recorded_at,
        NULL::text, event.payload::text, event.position, NULL::smallint, NULL::timestamptz,
        NULL::bigint, event.version, event.schema_version, command.key, command.correlation_id,
        command.causation_id
    FROM sequor.events AS event
    LEFT JOIN LATERAL (
        SELECT * FROM sequor.commands AS command
        WHERE command.tenant_id = tenant AND command.command_id = event.command_id
        OFFSET 0
    ) AS command ON true
    WHERE event.tenant_id = tenant AND event.aggregate = wanted_aggregate
        AND event.aggregate_id = wanted_id AND event.version > after
    ORDER BY event.version;
END
$$;

REVOKE ALL ON FUNCTION
    sequor.key_time(text), sequor.forget_vain_claim(),
    sequor.check_tenant(uuid[]), sequor.check_isolation(), sequor.check_open(uuid, uuid),
    sequor.check_commit(uuid, uuid, uuid[]),
    sequor.is_young(text, timestamptz), sequor.archived(uuid, text),
    sequor.expired_record(uuid, uuid), sequor.claim(integer, uuid, text),
    sequor.unclaim(uuid, text), sequor.hold(integer, uuid, text, text),
    sequor.history(uuid, text, text, text, bigint)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    sequor.check_open(uuid, uuid), sequor.claim(integer, uuid, text), sequor.unclaim(uuid, text),
    sequor.hold(integer, uuid, text, text), sequor.history(uuid, text, text, text, bigint)
    TO sequor_app;
