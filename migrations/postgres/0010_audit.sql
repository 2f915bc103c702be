-- What the audit compares with, and may read.

-- Which partition a tenant belongs to, as `Partition::of` says: the first eight bytes of
-- SHA-256('sequor:partition:1:' and the tenant's 16 bytes), big-endian, modulo the count. In two
-- halves, since bigint has a sign.
CREATE FUNCTION sequor.partition_of(tenant uuid, partitions smallint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT ((half.high % partitions) * (4294967296 % partitions) + half.low) % partitions
    FROM (
        SELECT
            ('x' || substr(digest.hex, 1, 8))::bit(32)::bigint AS high,
            ('x' || substr(digest.hex, 9, 8))::bit(32)::bigint AS low
        FROM (
            SELECT encode(sha256('sequor:partition:1:'::bytea || uuid_send(tenant)), 'hex') AS hex
        ) AS digest
    ) AS half
)::smallint;

-- What stands for a key of a command in the digest of a dropped month.
CREATE FUNCTION sequor.key_digest(tenant uuid, command uuid, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(concat_ws(':', tenant::text, command::text, key), 0);

-- What was dropped: a command whose key is in no table had it in one of these months, or has lost it.
-- Written by whoever drops a month; one row a month.
CREATE TABLE sequor.dropped_months (
    month text COLLATE "C" NOT NULL,
    keys bigint NOT NULL CHECK (keys >= 0),
    -- Of all its keys, see `sequor.key_digest`, in any order.
    digest bigint NOT NULL,
    dropped_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (month, dropped_at)
);

-- As in 0008_retention, and the month is remembered.
CREATE OR REPLACE FUNCTION sequor.drop_archive_month(
    wanted text, exported_keys bigint, exported_digest bigint
)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET TimeZone = 'UTC' SET DateStyle = 'ISO, MDY'
AS $$
DECLARE
    name text := 'idempotency_keys_archive_' || replace(wanted, '-', '_');
    found_keys bigint;
    found_digest bigint;
BEGIN
    IF wanted !~ '^[0-9]{4}-[0-9]{2}$' THEN
        RAISE EXCEPTION 'a month looks like 2026-11' USING ERRCODE = 'SQ006';
    END IF;
    IF wanted >= to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM') THEN
        RAISE EXCEPTION 'only a month that is over is dropped' USING ERRCODE = 'SQ004';
    END IF;
    BEGIN
        EXECUTE format('LOCK TABLE sequor.%I IN EXCLUSIVE MODE', name);
    EXCEPTION WHEN undefined_table THEN
        RAISE EXCEPTION 'no such month is archived' USING ERRCODE = 'SQ006';
    END;
    EXECUTE format(
        'SELECT count(*), bit_xor(hashtextextended(archive::text, 0)) FROM sequor.%I AS archive', name
    ) INTO found_keys, found_digest;
    IF found_keys <> exported_keys OR found_digest IS DISTINCT FROM exported_digest THEN
        RAISE EXCEPTION 'the month holds something else than was exported' USING ERRCODE = 'SQ007';
    END IF;
    EXECUTE format(
        'INSERT INTO sequor.dropped_months (month, keys, digest) '
        'SELECT %L, count(*), coalesce(bit_xor(sequor.key_digest(tenant_id, command_id, key)), 0) '
        'FROM sequor.%I',
        wanted, name
    );
    -- Everybody who comes queues up behind this; so it waits for a moment only, and is tried again.
    PERFORM set_config('lock_timeout', '50', true);
    EXECUTE format('DROP TABLE sequor.%I', name);
END
$$;

-- The audit reads as `sequor_system`, which sees all tenants and writes nothing.
REVOKE ALL ON FUNCTION
    sequor.partition_of(uuid, smallint), sequor.key_digest(uuid, uuid, text)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    sequor.partition_of(uuid, smallint), sequor.key_digest(uuid, uuid, text),
    sequor.key_time(text), sequor.is_young(text, timestamptz)
    TO sequor_system;
GRANT SELECT ON sequor.dropped_months TO sequor_system;
GRANT SELECT ON SEQUENCE sequor.positions TO sequor_system;
