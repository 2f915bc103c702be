-- Fifty deposits in one call of the function that sequor itself calls, each on another account of
-- this client's own. A script of pgbench: `clients` is given, `client_id` is pgbench's own.
\set share 1000 / :clients
\set first :client_id * :share
\set start random(0, :share - 1)
WITH wanted AS (
    SELECT
        row_number() OVER (ORDER BY stream.aggregate_id)::integer AS place, stream.tenant_id,
        stream.aggregate, stream.aggregate_id, stream.version,
        overlay(
            replace(gen_random_uuid()::text, '-', '')
            PLACING lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
            FROM 1 FOR 12
        )::uuid AS id
    FROM generate_series(0, 49) AS number (value)
    JOIN sequor.streams AS stream
        ON stream.tenant_id = '018f2f6e-0000-7000-8000-000000000001'
        AND stream.aggregate = 'account'
        AND stream.aggregate_id = '018f2f6e-0000-7000-8000-' || lpad(
            to_hex((:first::integer + (:start::integer + number.value) % :share::integer)::bigint),
            12, '0'
        )
), batch AS MATERIALIZED (
    SELECT
        array_agg(tenant_id ORDER BY place) AS tenants, array_agg(place ORDER BY place) AS places,
        array_agg(id ORDER BY place) AS ids, array_agg(id::text ORDER BY place) AS keys,
        array_agg(aggregate ORDER BY place) AS aggregates,
        array_agg(aggregate_id ORDER BY place) AS accounts,
        array_agg(version ORDER BY place) AS versions,
        array_agg(version + 1 ORDER BY place) AS next_versions,
        array_agg(
            format('{"Deposit":{"account":"%s","cents":1}}', aggregate_id) ORDER BY place
        ) AS payloads,
        array_agg(
            format('[["account","%s",%s]]', aggregate_id, version + 1) ORDER BY place
        ) AS streams,
        array_agg(clock_timestamp() ORDER BY place) AS times
    FROM wanted
)
SELECT 1 / (array_fill(0::smallint, ARRAY[50]) = answer.verdicts)::integer
FROM batch, sequor.commit(
    wait_ms => 5000, speaks_for => NULL, written_before => NULL, is_claimed => false,
    is_straight => true,
    lock_keys => (
        SELECT array_agg(lock_key) FROM sequor.partitions
        WHERE partition = (SELECT event.partition FROM sequor.events AS event LIMIT 1)
    ),
    c_tenant => batch.tenants,
    c_partition => array_fill(
        (SELECT event.partition FROM sequor.events AS event LIMIT 1), ARRAY[50]
    ),
    c_command => batch.ids, c_key => batch.keys,
    c_name => array_fill('ask'::text, ARRAY[50]), c_payload => batch.payloads,
    c_fingerprint => array_fill(
        '\x010203040506070809101112131415161718192021222324252627282930313233'::bytea, ARRAY[50]
    ),
    c_output => array_fill('null'::text, ARRAY[50]),
    c_actor => array_fill(NULL::text, ARRAY[50]), c_correlation => batch.ids,
    c_causation => array_fill(NULL::uuid, ARRAY[50]), c_recorded_at => batch.times,
    c_streams => batch.streams, c_last_event => batch.places,
    s_tenant => batch.tenants, s_aggregate => batch.aggregates, s_id => batch.accounts,
    s_expected => batch.versions, s_after => array_fill(NULL::uuid, ARRAY[50]),
    s_next => batch.next_versions, s_maker => batch.ids,
    w_command => batch.places, w_stream => batch.places, w_expected => batch.versions,
    w_after => array_fill(NULL::uuid, ARRAY[50]), w_next => batch.next_versions,
    e_command => batch.places, e_stream => batch.places, e_version => batch.next_versions,
    e_name => array_fill('posted'::text, ARRAY[50]), e_schema => array_fill(1, ARRAY[50]),
    e_payload => array_fill('{"Deposited":{"cents":1}}'::text, ARRAY[50]),
    u_command => '{}', u_stream => '{}', u_kind => '{}', u_scope => '{}', u_value => '{}'
) AS answer;
