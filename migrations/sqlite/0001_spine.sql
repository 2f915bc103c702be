-- The spine: what a command leaves behind, all of it written in one transaction.
--
-- Tenants and ids are 16-byte BLOBs, times are INTEGER microseconds since 1970 (UTC), JSON is
-- TEXT. Tables are STRICT, so that a column holds what its type says and a damaged row shows.
-- Where keys may be random, tables are narrow and WITHOUT ROWID, so that a command touches few
-- pages; what is wide is appended by rowid.

-- What this file is. One row, written here and never again; grows never.
CREATE TABLE store (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    -- Names the store for ever.
    store_id BLOB NOT NULL CHECK (length(store_id) = 16),
    -- Names this life of the store: positions of different epochs do not compare.
    epoch BLOB NOT NULL CHECK (length(epoch) = 16)
) STRICT;

INSERT INTO store (id, store_id, epoch) VALUES (1, randomblob(16), randomblob(16));

-- Every command that took effect, with what a replay answers. Written by the commit; one row a
-- command; what events and keys refer to, so it outlives them.
-- AUTOINCREMENT: a number that was used names that command for ever, even after deletes.
CREATE TABLE commands (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    command_id BLOB NOT NULL CHECK (length(command_id) = 16),
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    key TEXT,
    name TEXT NOT NULL,
    payload TEXT NOT NULL,
    fingerprint BLOB,
    output TEXT NOT NULL,
    actor TEXT,
    correlation_id BLOB NOT NULL,
    causation_id BLOB,
    recorded_at INTEGER NOT NULL,
    -- The aggregates with their versions right after the command: [[aggregate, id, version], …].
    streams TEXT NOT NULL,
    -- Of its last event; NULL without events.
    position INTEGER
) STRICT;

-- Every event, in the order in which it became true. Written by the commit; one row an event.
-- AUTOINCREMENT: a position is never used twice, even after deletes.
CREATE TABLE events (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    aggregate TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    name TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    payload TEXT NOT NULL,
    -- The command that made it happen: `commands.number`. No REFERENCES, which would cost every
    -- event a look-up and the removal of a tenant a scan; the audit compares them.
    command INTEGER NOT NULL,
    UNIQUE (tenant_id, aggregate, aggregate_id, version)
) STRICT;

-- The version of every stream. Written by the commit; one row an aggregate.
CREATE TABLE streams (
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    aggregate TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    PRIMARY KEY (tenant_id, aggregate, aggregate_id)
) STRICT, WITHOUT ROWID;

-- What is remembered under a key. Written by the commit, removed by the reaper only; one row a
-- keyed command, as long as its retention lasts. Kept narrow: callers may choose random keys.
CREATE TABLE idempotency_keys (
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    key TEXT NOT NULL,
    -- The command row of the same transaction.
    command INTEGER NOT NULL REFERENCES commands (number),
    -- 0: completed. 1: reserved by an effect that has left the database and is not back yet.
    state INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0, 1)),
    -- Of a reservation only: until when its owner may work, and which owner it is.
    lease_until INTEGER,
    fence INTEGER,
    PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;

-- Values that one aggregate of a tenant holds at a time. Written by the commit; one row a value
-- that is held now.
CREATE TABLE unique_keys (
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    scope TEXT NOT NULL,
    value TEXT NOT NULL,
    aggregate TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    PRIMARY KEY (tenant_id, scope, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX unique_keys_by_holder ON unique_keys (tenant_id, aggregate, aggregate_id);
