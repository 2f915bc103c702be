-- How far projections have come: what they need to take in each event exactly once.

-- How far a release of a projection has come. Written with its rows, in one transaction; one row
-- a release, updated in place. Who may move it is no row here: one process has the file.
CREATE TABLE checkpoints (
    projection TEXT NOT NULL,
    projection_version INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    -- Everything up to here was taken in, or is parked.
    position INTEGER NOT NULL CHECK (position >= 0),
    PRIMARY KEY (projection, projection_version, partition)
) STRICT, WITHOUT ROWID;

-- How far a release of a projection has come in a stream. Written with the checkpoint; one row an
-- aggregate and release that has met it, removed with the release or the tenant.
CREATE TABLE projected_streams (
    tenant_id BLOB NOT NULL CHECK (length(tenant_id) = 16),
    projection TEXT NOT NULL,
    projection_version INTEGER NOT NULL,
    aggregate TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    partition INTEGER NOT NULL,
    -- Every event up to here was taken in.
    version INTEGER NOT NULL CHECK (version >= 0),
    -- Why those behind it wait, how often the first of them was tried, and since when: a parked
    -- stream's only.
    parked_reason TEXT,
    parked_attempts INTEGER,
    parked_since INTEGER,
    PRIMARY KEY (tenant_id, projection, projection_version, aggregate, aggregate_id),
    CHECK ((parked_reason IS NULL) = (parked_since IS NULL)),
    CHECK ((parked_reason IS NULL) = (parked_attempts IS NULL))
) STRICT, WITHOUT ROWID;

-- The streams that wait for a decision. Few, or something is wrong.
CREATE INDEX projected_streams_parked
    ON projected_streams (projection, projection_version, parked_since)
    WHERE parked_since IS NOT NULL;
