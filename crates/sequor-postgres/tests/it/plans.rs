//! Every statement finds its rows by an index, also with plans that were made when the tables were
//! empty: on 100,000 rows, nothing is read from end to end, and no more rows than are needed.
//!
//! What a statement reads is asked of the server, which counts rows for each transaction; the text
//! of plans inside functions cannot be had.

use std::collections::BTreeMap;

use sequor_core::commit::StreamDraft;
use sequor_core::ports::{HistoryRequest, ReadHistory, Transact, Transaction};
use sequor_core::{Name, Projections, UniqueChange, UniqueKey, Version};
use sequor_testserver::Database;
use sqlx::{PgConnection, Row as _};

use crate::support::{
    checked, commit, draft, fresh, installed, key, keyed, open, settings, stream, tenant, with_key,
};

/// Fills every table: one tenant's commands, each with a key, an event of one of 1,000 streams, and
/// a unique value.
const SEED: &str = "
    INSERT INTO sequor.commands
    SELECT '018f2f6e-0000-7000-8000-000000000001', md5('c' || n)::uuid, 'seed-' || n,
        'account.deposit', '{}', NULL, '{}', NULL, md5('c' || n)::uuid, NULL, now(), '[]', n
    FROM generate_series(1, 100000) AS n;
    INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
    SELECT tenant_id, key, command_id FROM sequor.commands WHERE key LIKE 'seed-%';
    INSERT INTO sequor.events
    SELECT '018f2f6e-0000-7000-8000-000000000001', 'account', 's' || n % 1000, 1 + n / 1000,
        sequor_partition, nextval('sequor.positions'), 'account.deposited', 1, '{}',
        md5('c' || n)::uuid
    FROM generate_series(1, 99999) AS n,
        (SELECT partition AS sequor_partition FROM sequor.events LIMIT 1) AS p;
    INSERT INTO sequor.streams
    SELECT '018f2f6e-0000-7000-8000-000000000001', 'account', 'many' || n, 1, md5('c' || n)::uuid
    FROM generate_series(1, 100000) AS n;
    INSERT INTO sequor.unique_keys
    SELECT '018f2f6e-0000-7000-8000-000000000001', 'email', 'v' || n, 'account', 'many' || n
    FROM generate_series(1, 100000) AS n;
    ANALYZE sequor.commands, sequor.idempotency_keys, sequor.events, sequor.streams,
        sequor.unique_keys";

/// Of each table: rows that were read from end to end, and rows that were found by an index.
type Reads = BTreeMap<String, (i64, i64)>;

/// What this session has read so far, as far as it has not been handed over to the server's
/// statistics.
async fn reads(session: &mut PgConnection) -> Reads {
    let read = "SELECT relname::text, coalesce(seq_tup_read, 0), coalesce(idx_tup_fetch, 0)
        FROM pg_stat_xact_user_tables WHERE schemaname = 'sequor'
        AND relname IN ('commands', 'events', 'streams', 'idempotency_keys', 'unique_keys')";
    let rows = sqlx::query(read).fetch_all(session).await.unwrap();
    rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect()
}

async fn assert_few(session: &mut PgConnection, before: &Reads, found_max: i64) {
    for (table, (end_to_end, found)) in reads(session).await {
        let (end_to_end_before, found_before) = before.get(&table).copied().unwrap_or_default();
        let found = found - found_before;
        assert_eq!(end_to_end, end_to_end_before, "{table} is read from end to end");
        assert!(found <= found_max, "{found} rows of {table} are read");
    }
}

/// A database whose statements were all planned while it was empty, by the one session of a store,
/// and which was filled afterwards.
async fn filled() -> (Database, sequor_postgres::PostgresStore) {
    let database = installed().await;
    let mut settings = settings(&database);
    (settings.connections_max, settings.writers_max) = (2, 1);
    let store = sequor_postgres::PostgresStore::open(settings).await.unwrap();
    fresh(commit(&store, keyed("first", "first", 0)).await);
    drop(use_everything(&store, "before").await.0);
    database.run(SEED).await;
    (database, store)
}

/// Claims, reads and writes, with streams that exist and that do not, and with unique values.
async fn use_everything(
    store: &sequor_postgres::PostgresStore,
    name: &str,
) -> (sequor_postgres::PostgresTransaction, Reads) {
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let before = reads(transaction.connection()).await;
    assert_eq!(transaction.claim(tenant(1), &key(name)).await.unwrap(), None);
    let first = stream("first");
    let request = HistoryRequest {
        tenant: tenant(1),
        key: Some(&key("unknown")),
        stream: Some((&first, Version::NONE)),
    };
    assert_eq!(transaction.history(request).await.unwrap().events.len(), 1);
    let mut one = with_key(draft(tenant(1), "first", 1), name);
    one.streams.push(StreamDraft {
        stream: stream(name),
        expected: Version::NONE,
        ..one.streams[0].clone()
    });
    let email = UniqueKey::new(Name::new("email").unwrap(), name).unwrap();
    one.streams[1].unique.push(UniqueChange::Hold(email));
    transaction.write(checked(one), &Projections::none()).await.unwrap();
    (transaction, before)
}

#[tokio::test]
async fn writing_reads_no_more_than_it_needs() {
    let (_database, store) = filled().await;
    let (mut transaction, before) = use_everything(&store, "after").await;
    assert_few(transaction.connection(), &before, 6).await;
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn a_known_key_is_its_row_and_that_of_its_command() {
    let (_database, store) = filled().await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let before = reads(transaction.connection()).await;
    assert!(transaction.claim(tenant(1), &key("seed-4711")).await.unwrap().is_some());
    assert_few(transaction.connection(), &before, 2).await;
}

#[tokio::test]
async fn a_stream_is_as_many_rows_as_it_has_events() {
    let (_database, store) = filled().await;
    let long = stream("s7");
    for (after, events) in [(0, 100_i64), (97, 3)] {
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        let before = reads(transaction.connection()).await;
        let stream = Some((&long, Version::new(after)));
        let request = HistoryRequest { tenant: tenant(1), key: None, stream };
        let found = transaction.history(request).await.unwrap().events.len();
        assert_eq!(i64::try_from(found).unwrap(), events);
        assert_few(transaction.connection(), &before, events).await;
    }
}

#[tokio::test]
async fn a_value_that_is_taken_is_found_by_its_index() {
    let (_database, store) = filled().await;
    let mut one = draft(tenant(1), "late", 0);
    let email = UniqueKey::new(Name::new("email").unwrap(), "v77").unwrap();
    one.streams[0].unique.push(UniqueChange::Hold(email));
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let before = reads(transaction.connection()).await;
    let refused = transaction.write(checked(one), &Projections::none()).await.unwrap_err();
    assert!(refused.to_string().contains("many77"), "{refused}");
    assert_few(transaction.connection(), &before, 2).await;
}

#[tokio::test]
async fn the_log_reads_a_page_and_its_end() {
    let (database, store) = filled().await;
    let partition: i16 = sqlx::query_scalar("SELECT partition FROM sequor.events LIMIT 1")
        .fetch_one(&mut database.session().await)
        .await
        .unwrap();
    let mut session = database.session().await;
    for (sql, found_max) in [
        ("SELECT FROM sequor.read_log($1, 50000, 1000000, 100)", 100),
        ("SELECT FROM sequor.candidate($1)", 1),
    ] {
        sqlx::raw_sql("BEGIN").execute(&mut session).await.unwrap();
        let before = reads(&mut session).await;
        sqlx::query(sql).bind(partition).fetch_all(&mut session).await.unwrap();
        assert_few(&mut session, &before, found_max).await;
        sqlx::raw_sql("ROLLBACK").execute(&mut session).await.unwrap();
    }
    sqlx::raw_sql("BEGIN").execute(&mut session).await.unwrap();
    let before = reads(&mut session).await;
    sqlx::raw_sql("SELECT FROM sequor.self_check()").execute(&mut session).await.unwrap();
    assert_few(&mut session, &before, 16).await;
    drop(store);
    let store = open(&database).await;
    let unknown = key("unknown");
    let request = HistoryRequest { tenant: tenant(1), key: Some(&unknown), stream: None };
    assert_eq!(store.history(request).await.unwrap().record, None);
}
