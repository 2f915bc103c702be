-- The spine: what a command leaves behind, all of it written in one transaction.
--
-- Everything lives in the schema `sequor`, so that it never meets the tables of its users. Keys
-- start with the tenant, which routes them. Text that is compared is COLLATE "C": byte for byte,
-- whatever the database's language is. JSON is `json`, not `jsonb`: what a replay answers must be
-- the same bytes, and jsonb rewrites numbers and the order of members.
--
-- Nobody inserts here but the functions of the migrations behind this one, which belong to the
-- owner. Hence no foreign keys: each would cost every command 4 to 13 % (measured); what they
-- would check is written by one function and compared by the audit.

CREATE SCHEMA IF NOT EXISTS sequor;

-- Who works here. Both own nothing.
--   sequor_app     the bus, and the SQL of handlers and inline projections: sees one tenant.
--   sequor_system  runners, relay and reaper: reads the log of all tenants.
-- Roles belong to the whole server, so they may be there already, or be made by a rival now.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['sequor_app', 'sequor_system'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END
$$;

-- What this store is. One row, written here; grows never.
CREATE TABLE sequor.store (
    id smallint NOT NULL PRIMARY KEY CHECK (id = 1),
    -- Names the store for ever.
    store_id uuid NOT NULL,
    -- Names this life of the store: positions of different epochs do not compare. Renew it after a
    -- restore to an earlier moment.
    epoch uuid NOT NULL,
    -- Into how many partitions tenants are spread. Fixed for ever: a tenant must stay where it is.
    partitions smallint NOT NULL CHECK (partitions BETWEEN 1 AND 1024)
);

INSERT INTO sequor.store (id, store_id, epoch, partitions)
VALUES (
    1, gen_random_uuid(), gen_random_uuid(),
    coalesce(nullif(current_setting('sequor.partitions', true), ''), '16')::smallint
);

-- The partitions with the key of the advisory lock under which positions are drawn: shared by all
-- writers, held exclusively by nobody, so nobody ever waits for it. Readers look up who holds it.
CREATE TABLE sequor.partitions (
    partition smallint NOT NULL PRIMARY KEY,
    lock_key bigint NOT NULL UNIQUE
);

INSERT INTO sequor.partitions (partition, lock_key)
SELECT number, hashtextextended(format('sequor:partition:1:%s:%s', store.store_id, number), 0)
FROM sequor.store, generate_series(0, store.partitions - 1) AS number;

-- Every command that took effect, with what a replay answers. Written by the commit; one row a
-- command, wide, appended in time order (ids are UUIDv7); removed with its tenant only.
CREATE TABLE sequor.commands (
    tenant_id uuid NOT NULL,
    command_id uuid NOT NULL,
    key text COLLATE "C",
    name text COLLATE "C" NOT NULL,
    payload json NOT NULL,
    fingerprint bytea,
    output json NOT NULL,
    actor text COLLATE "C",
    correlation_id uuid NOT NULL,
    causation_id uuid,
    recorded_at timestamptz NOT NULL,
    -- The aggregates with their versions right after the command: [[aggregate, id, version], …].
    streams json NOT NULL,
    -- Of its last event; NULL without events.
    position bigint,
    PRIMARY KEY (tenant_id, command_id)
);

-- Positions of all partitions. CACHE 1, so that who draws later draws higher; no owner, no
-- default: it is drawn under the partition's lock only.
CREATE SEQUENCE sequor.positions AS bigint MINVALUE 1 NO CYCLE CACHE 1;

-- Every event. Written by the commit; one row an event; removed with its tenant only.
CREATE TABLE sequor.events (
    tenant_id uuid NOT NULL,
    aggregate text COLLATE "C" NOT NULL,
    aggregate_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    partition smallint NOT NULL,
    position bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    schema_version integer NOT NULL,
    payload json NOT NULL,
    -- The command that made it happen: `commands.command_id` of the tenant.
    command_id uuid NOT NULL,
    CONSTRAINT events_version_once PRIMARY KEY (tenant_id, aggregate, aggregate_id, version),
    CONSTRAINT events_position_once UNIQUE (partition, position)
);

-- The version of every stream. Written by the commit; one row an aggregate, updated in place
-- (room is left in each page, so that no index has to change).
CREATE TABLE sequor.streams (
    tenant_id uuid NOT NULL,
    aggregate text COLLATE "C" NOT NULL,
    aggregate_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL CHECK (version >= 0),
    -- The command that made this version: a decision that was made on what a command had yet to
    -- make holds for that command's version only, not for whatever has the same number.
    command_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, aggregate, aggregate_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- What is remembered under a key. Written by the commit or by a handler's claim, removed by the
-- reaper only; one row a keyed command, as long as its retention lasts. Kept narrow: callers may
-- choose random keys.
CREATE TABLE sequor.idempotency_keys (
    tenant_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    -- The command row of the same transaction. A claim does not know it yet and writes zeros.
    command_id uuid NOT NULL,
    -- When it was claimed, by this server's clock: what the retention counts from.
    claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- 0: completed. 1: reserved by an effect that has left the database and is not back yet.
    state smallint NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),
    -- Of a reservation only: until when its owner may work, and which owner it is.
    lease_until timestamptz,
    fence bigint,
    PRIMARY KEY (tenant_id, key)
);

-- How the reaper finds what is oldest. Grows at its right end only.
CREATE INDEX idempotency_keys_by_age ON sequor.idempotency_keys (claimed_at);

-- How long keys are kept, and how far they were archived. One row.
CREATE TABLE sequor.retention (
    id smallint NOT NULL PRIMARY KEY CHECK (id = 1),
    -- The guarantee: no key is archived before it is so old.
    keep interval NOT NULL CHECK (keep > interval '0'),
    -- No key that was claimed later than this was archived; NULL when none was.
    archived_to timestamptz
);

INSERT INTO sequor.retention (id, keep) VALUES (1, interval '90 days');

-- Keys past their retention: a retry under one of them is told so, and does not run. Written by the
-- reaper, by the month in which it ran; a month is exported, and then dropped as a whole. A key may
-- stand in several months, which is why uniqueness is no matter here.
CREATE TABLE sequor.idempotency_keys_archive (
    tenant_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    command_id uuid NOT NULL,
    claimed_at timestamptz NOT NULL,
    archived_at timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (archived_at);

CREATE INDEX idempotency_keys_archive_by_key ON sequor.idempotency_keys_archive (tenant_id, key);

-- Values that one aggregate of a tenant holds at a time. Written by the commit; one row a value
-- that is held now.
CREATE TABLE sequor.unique_keys (
    tenant_id uuid NOT NULL,
    scope text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    aggregate text COLLATE "C" NOT NULL,
    aggregate_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, scope, value)
);

CREATE INDEX unique_keys_by_holder ON sequor.unique_keys (tenant_id, aggregate, aggregate_id);

-- What follows is written by what comes after a command, or is yet to come; it is here, so that what
-- it adds to a commit is part of its design.

-- The state of an aggregate as of a version, so that a long stream need not be folded from its
-- beginning. One row an aggregate at most, replaced by the next one.
CREATE TABLE sequor.snapshots (
    tenant_id uuid NOT NULL,
    aggregate text COLLATE "C" NOT NULL,
    aggregate_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    -- Of the state's shape: a changed shape falls back to events.
    fingerprint bytea NOT NULL,
    state bytea NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, aggregate, aggregate_id)
);

-- Messages that left with a command, until they are delivered. One row a message.
CREATE TABLE sequor.outbox (
    tenant_id uuid NOT NULL,
    message_id uuid NOT NULL,
    partition smallint NOT NULL,
    position bigint NOT NULL,
    command_id uuid NOT NULL,
    topic text COLLATE "C" NOT NULL,
    -- What keeps messages in order: the stream.
    message_key text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    payload json NOT NULL,
    headers json NOT NULL,
    PRIMARY KEY (tenant_id, message_id)
);

-- How far a projection has come in a partition. One row each.
CREATE TABLE sequor.checkpoints (
    projection text COLLATE "C" NOT NULL,
    projection_version integer NOT NULL,
    partition smallint NOT NULL,
    position bigint NOT NULL CHECK (position >= 0),
    PRIMARY KEY (projection, projection_version, partition)
);

-- The tenant that this transaction speaks for, or NULL. Set for the transaction only; a pooled
-- connection shows the empty string afterwards.
CREATE FUNCTION sequor.tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('sequor.tenant', true), '')::uuid;

-- The wall between tenants: a row is there for its own tenant only, and for the system's readers.
-- It holds for every role but the owner; nobody may write.
DO $$
DECLARE
    walled text;
BEGIN
    FOREACH walled IN ARRAY ARRAY[
        'commands', 'events', 'streams', 'idempotency_keys', 'idempotency_keys_archive',
        'unique_keys', 'snapshots', 'outbox'
    ] LOOP
        EXECUTE format('ALTER TABLE sequor.%I ENABLE ROW LEVEL SECURITY', walled);
        EXECUTE format(
            'CREATE POLICY one_tenant ON sequor.%I FOR SELECT TO sequor_app '
            'USING (tenant_id = (SELECT sequor.tenant()))', walled
        );
        EXECUTE format(
            'CREATE POLICY all_tenants ON sequor.%I FOR SELECT TO sequor_system USING (true)', walled
        );
        EXECUTE format('GRANT SELECT ON sequor.%I TO sequor_app, sequor_system', walled);
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA sequor TO sequor_app, sequor_system;
GRANT SELECT ON sequor.store, sequor.partitions, sequor.retention TO sequor_app, sequor_system;

-- Builds the same wall around a table of the user's own that has a column `tenant_id`, and lets
-- handlers and projections write it: `SELECT sequor.wall('balances');` once, by its owner.
CREATE FUNCTION sequor.wall(walled regclass) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', walled);
    EXECUTE format('DROP POLICY IF EXISTS one_tenant ON %s', walled);
    EXECUTE format(
        'CREATE POLICY one_tenant ON %s TO sequor_app '
        'USING (tenant_id = (SELECT sequor.tenant()))', walled
    );
    EXECUTE format('DROP POLICY IF EXISTS all_tenants ON %s', walled);
    EXECUTE format(
        'CREATE POLICY all_tenants ON %s FOR SELECT TO sequor_system USING (true)', walled
    );
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO sequor_app', walled);
    EXECUTE format('GRANT SELECT ON %s TO sequor_system', walled);
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA sequor FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequor.tenant(), sequor.wall(regclass) TO PUBLIC;

-- Whoever installs may also run a bus, where it has the right to say so.
DO $$
BEGIN
    EXECUTE format('GRANT sequor_app, sequor_system TO %I', current_user);
EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN
    RAISE NOTICE 'grant sequor_app and sequor_system to the roles that run the bus';
END
$$;
