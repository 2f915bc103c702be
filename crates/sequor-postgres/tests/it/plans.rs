//! Every statement finds its rows by an index, also with plans that were made when the tables were
//! empty: on 100,000 rows, nothing is read from end to end, and no more rows than are needed. The
//! server has not looked at the tables since, which it does every minute at best.
//!
//! What a statement reads is asked of the server, which counts rows: for each transaction, or, where
//! the session is the store's own, for the database. The text of plans inside functions cannot be had.
//! Left out are tables that are small by nature, and those statements that read no tables.

use std::collections::BTreeMap;
use std::time::Duration;

use sequor_core::commit::StreamDraft;
use sequor_core::ports::{Committed, HistoryRequest, Transact, Transaction};
use sequor_core::{
    Commit, Name, Projections, Record, RecordState, StoreError, UniqueChange, UniqueKey, Version,
};
use sequor_postgres::{PostgresStore, PostgresTransaction};
use sequor_testserver::Database;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{
    checked, commit, draft, fresh, installed, key, keyed, settings, stream, tenant, with_key,
};

/// Makes tables for the archive's months, and a past that keys may belong to.
const BEGIN: &str = "
    SELECT sequor.make_archive_month(clock_timestamp());
    SELECT sequor.make_archive_month('2020-02-03 04:05:06+00');
    SELECT sequor.lease('sums', 1, 0::smallint, gen_random_uuid(), 60000);
    UPDATE sequor.retention SET archived_to = clock_timestamp() + interval '1 year'";

/// Fills every table: one tenant's commands, each with a key (a third of them past their retention),
/// an event of one of 1,000 streams, and a unique value; and an archive of two months.
const SEED: &str = "
    INSERT INTO sequor.commands
    SELECT '018f2f6e-0000-7000-8000-000000000001', md5('c' || n)::uuid, 'seed-' || n,
        'account.deposit', '{}', NULL, '{}', NULL, md5('c' || n)::uuid, NULL, now(), '[]', n
    FROM generate_series(1, 100000) AS n;
    INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id, claimed_at)
    SELECT tenant_id, key, command_id, now() - position * interval '2 minutes'
    FROM sequor.commands WHERE key LIKE 'seed-%';
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
    INSERT INTO sequor.projected_streams
    SELECT '018f2f6e-0000-7000-8000-000000000001', 'sums', 1, 'account', 's' || n, 0, n,
        CASE WHEN n % 1000 = 0 THEN 'why' END, CASE WHEN n % 1000 = 0 THEN 1 END,
        CASE WHEN n % 1000 = 0 THEN now() END
    FROM generate_series(51, 100000) AS n;
    INSERT INTO sequor.idempotency_keys_archive
    SELECT '018f2f6e-0000-7000-8000-000000000001', 'gone-' || n, md5('c' || n)::uuid, now(),
        CASE WHEN n <= 1000 THEN '2020-02-03 04:05:06+00' ELSE now() END
    FROM generate_series(1, 101000) AS n;
    SELECT pg_stat_force_next_flush()";

/// Runs the trigger that forgets a claim in vain, as a COMMIT would.
const FIRE: &str = "SET CONSTRAINTS ALL IMMEDIATE";
const UNCLAIM: &str = "SELECT sequor.unclaim('018f2f6e-0000-7000-8000-000000000001', 'seed-5')";

/// Of each table: rows that were read from end to end, and rows that were found by an index.
type Reads = BTreeMap<String, (i64, i64)>;

/// Which of sequor's tables may grow.
const GROWING: &str = "schemaname = 'sequor'
    AND relname NOT IN ('store', 'partitions', 'retention', 'migrations')";

async fn reads_in(view: &str, session: &mut PgConnection) -> Reads {
    let read = format!(
        "SELECT relname::text, coalesce(seq_tup_read, 0), coalesce(idx_tup_fetch, 0)
        FROM {view} WHERE {GROWING}"
    );
    let rows = sqlx::query(AssertSqlSafe(read)).persistent(false).fetch_all(session).await.unwrap();
    rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect()
}

/// What this session has read so far, as far as it has not been handed over to the server's
/// statistics.
async fn reads(session: &mut PgConnection) -> Reads {
    reads_in("pg_stat_xact_user_tables", session).await
}

/// What was read between two moments.
fn between(before: &Reads, after: &Reads) -> Reads {
    let past = |table: &String| before.get(table).copied().unwrap_or_default();
    let more = after.iter().map(|(table, (end_to_end, found))| {
        let (end_to_end_before, found_before) = past(table);
        (table.clone(), (end_to_end - end_to_end_before, found - found_before))
    });
    more.collect()
}

fn assert_found(reads: &Reads, found_max: i64) {
    for (table, (end_to_end, found)) in reads {
        assert_eq!(*end_to_end, 0, "{table} is read from end to end");
        assert!(*found <= found_max, "{found} rows of {table} are read");
    }
}

async fn assert_few(session: &mut PgConnection, before: &Reads, found_max: i64) {
    assert_found(&between(before, &reads(session).await), found_max);
}

/// A database whose statements were all planned while it was empty, by the one session of a store,
/// and which was filled afterwards.
async fn filled() -> (Database, PostgresStore) {
    let (database, store, _) = filled_after(&[]).await;
    (database, store)
}

/// The same, with a session of the owner that has run some statements before.
async fn filled_after(before: &[&'static str]) -> (Database, PostgresStore, PgConnection) {
    let database = installed().await;
    database.run(BEGIN).await;
    let mut settings = settings(&database);
    (settings.connections_max, settings.writers_max) = (2, 1);
    let store = PostgresStore::open(settings).await.unwrap();
    fresh(commit(&store, keyed("first", "first", 0)).await);
    alone(&store, 0).await;
    drop(use_everything(&store, "before").await.0);
    let mut rest = store.begin(tenant(1)).await.unwrap();
    rest.hold(&stream("first")).await.unwrap();
    assert!(rest.claim(tenant(1), &key("first")).await.unwrap().is_some());
    assert_eq!(rest.claim(tenant(1), &key("vain")).await.unwrap(), None);
    for sql in [FIRE, UNCLAIM] {
        sqlx::raw_sql(sql).execute(rest.connection()).await.unwrap();
    }
    drop(rest);
    let mut session = database.session().await;
    for sql in before {
        sqlx::query(*sql).fetch_all(&mut session).await.unwrap();
    }
    database.run(SEED).await;
    (database, store, session)
}

/// What a statement reads, in a transaction that leaves nothing.
async fn reads_of(sql: &'static str, session: &mut PgConnection) -> Reads {
    sqlx::raw_sql("BEGIN").execute(&mut *session).await.unwrap();
    let before = reads(session).await;
    sqlx::query(sql).fetch_all(&mut *session).await.unwrap();
    let after = reads(session).await;
    sqlx::raw_sql("ROLLBACK").execute(session).await.unwrap();
    between(&before, &after)
}

/// Claims, reads and writes, with streams that exist and that do not, and with unique values.
async fn use_everything(store: &PostgresStore, name: &str) -> (PostgresTransaction, Reads) {
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
    let before = reads(transaction.connection()).await;
    let known = key("seed-4712");
    let request = HistoryRequest { tenant: tenant(1), key: Some(&known), stream: None };
    assert!(transaction.history(request).await.unwrap().record.is_some());
    assert_few(transaction.connection(), &before, 1).await;
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

/// What readers, the reaper and an operator ask for, each with how many rows of a table it may read.
const ASKED: [(&str, i64); 9] = [
    // The partition is a row of its own.
    (
        "SELECT sequor.read_log(partition, 50000, 1000000, 100) FROM sequor.events
        WHERE tenant_id = '018f2f6e-0000-7000-8000-000000000001' AND aggregate = 'account'
            AND aggregate_id = 'first' AND version = 1",
        101,
    ),
    (
        "SELECT sequor.candidate(partition) FROM sequor.events
        WHERE tenant_id = '018f2f6e-0000-7000-8000-000000000001' AND aggregate = 'account'
            AND aggregate_id = 'first' AND version = 1",
        2,
    ),
    ("SELECT sequor.self_check()", 1),
    // A checkpoint, and how its streams stand; both are read once more to be written.
    (
        "SELECT sequor.begin_step(5, 'sums', 1, 0::smallint, 1, array_fill(
            '018f2f6e-0000-7000-8000-000000000001'::uuid, ARRAY[50]), array_fill('account'::text,
            ARRAY[50]), ARRAY(SELECT 's' || n FROM generate_series(1, 50) AS n))",
        50,
    ),
    (
        "SELECT sequor.save_step('sums', 1, 0::smallint, pg_current_xact_id()::text, 7, array_fill(
            '018f2f6e-0000-7000-8000-000000000001'::uuid, ARRAY[50]), array_fill('account'::text,
            ARRAY[50]), ARRAY(SELECT 's' || n FROM generate_series(1, 50) AS n), array_fill(
            9::bigint, ARRAY[50]), array_fill(NULL::text, ARRAY[50]), array_fill(NULL::integer,
            ARRAY[50]), array_fill(NULL::timestamptz, ARRAY[50]))",
        50,
    ),
    ("SELECT sequor.parked('sums', 1, 20)", 20),
    // Each key is found by its age, and again by itself.
    ("SELECT sequor.reap_keys(100)", 200),
    (
        "SELECT sequor.read_archive(to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM'),
            '018f2f6e-0000-7000-8000-000000000001', 'gone-5', 100)",
        100,
    ),
    ("SELECT sequor.read_archive('2020-02', '00000000-0000-0000-0000-000000000000', '', 100)", 100),
];

#[tokio::test]
async fn what_is_asked_for_is_found_by_its_index() {
    let (_database, _store, mut session) = filled_after(&ASKED.map(|(sql, _)| sql)).await;
    for (sql, found_max) in ASKED {
        let reads = reads_of(sql, &mut session).await;
        assert_found(&reads, found_max);
        let most = reads.values().map(|(_, found)| *found).max();
        assert!(most >= Some(found_max / 2), "{sql}: {reads:?}");
    }
    archives_are_read_once(&mut session).await;
}

/// A digest is of all rows: of the archive, or of the month that is dropped.
async fn archives_are_read_once(session: &mut PgConnection) {
    // What parallel workers read is counted elsewhere.
    let lonely = "SET max_parallel_workers_per_gather = 0";
    sqlx::raw_sql(lonely).execute(&mut *session).await.unwrap();
    let all = |reads: Reads| reads.values().map(|(end_to_end, found)| end_to_end + found).sum();
    let months: i64 = all(reads_of("SELECT sequor.archive_months()", session).await);
    assert_eq!(months, 101_000);
    let drop = "SELECT sequor.drop_archive_month(month, keys, digest)
        FROM sequor.archive_months() WHERE month = '2020-02'";
    // A table that is gone is counted no more.
    let both: i64 = all(reads_of(drop, session).await);
    assert!((100_000..=102_000).contains(&both), "{both}");
}

#[tokio::test]
async fn an_archived_key_is_its_row_and_that_of_its_command() {
    let (_database, store) = filled().await;
    for text in ["gone-7", "gone-70000"] {
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        let before = reads(transaction.connection()).await;
        let claimed = transaction.claim(tenant(1), &key(text)).await.unwrap().unwrap();
        assert_eq!(claimed.state, RecordState::Expired);
        assert_few(transaction.connection(), &before, 1).await;
        let before = reads(transaction.connection()).await;
        let request = HistoryRequest { tenant: tenant(1), key: Some(&key(text)), stream: None };
        let known = transaction.history(request).await.unwrap().record.unwrap();
        assert_eq!(known.command_id, claimed.command_id);
        assert_few(transaction.connection(), &before, 1).await;
    }
}

#[tokio::test]
async fn what_is_held_or_let_go_of_is_found_by_its_index() {
    let (_database, store) = filled().await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let before = reads(transaction.connection()).await;
    transaction.hold(&stream("many4711")).await.unwrap();
    transaction.hold(&stream("none")).await.unwrap();
    assert_few(transaction.connection(), &before, 1).await;
    // A claim in vain is forgotten when it ends.
    assert_eq!(transaction.claim(tenant(1), &key("vain")).await.unwrap(), None);
    let before = reads(transaction.connection()).await;
    sqlx::raw_sql(FIRE).execute(transaction.connection()).await.unwrap();
    assert_few(transaction.connection(), &before, 1).await;
    let before = reads(transaction.connection()).await;
    sqlx::raw_sql(UNCLAIM).execute(transaction.connection()).await.unwrap();
    assert_few(transaction.connection(), &before, 1).await;
}

/// Holds what some commits of [`together`] want.
const STRANGER: &str = "BEGIN;
    SELECT sequor.hold(5, '018f2f6e-0000-7000-8000-000000000001', 'account', 'many95');
    SELECT sequor.hold(5, '018f2f6e-0000-7000-8000-000000000001', 'account', 'many96');
    INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
    VALUES ('018f2f6e-0000-7000-8000-000000000001', 'k97', gen_random_uuid());
    SELECT pg_advisory_xact_lock(hashtextextended(
        'sequor:unique:018f2f6e-0000-7000-8000-000000000001:email:v98', 0))";
const BLOCKED: u64 = 4;

/// What the writers do by themselves: commits alone and in batches, fresh, known, expired, too late,
/// with unique values that are taken, held and let go of; and in the way of a stranger.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_read_no_more_than_they_need() {
    let (database, store) = filled().await;
    let mut session = database.session().await;
    let before = reads_in("pg_stat_user_tables", &mut session).await;
    for n in 1..=20 {
        alone(&store, n).await;
        expired(&store, n).await;
    }
    let mut stranger = database.session().await;
    sqlx::raw_sql(STRANGER).execute(&mut stranger).await.unwrap();
    let mut running = JoinSet::new();
    for n in 90..190 {
        let store = store.clone();
        running.spawn(async move { fresh(commit(&store, together(n)).await) });
    }
    let blocked = async {
        while store.stats().alone < BLOCKED {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, blocked).await.unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut stranger).await.unwrap();
    assert_eq!(running.join_all().await.len(), 100);
    store.close().await;
    timeout(LIMIT, hands_over(&mut session)).await.unwrap();
    let after = reads_in("pg_stat_user_tables", &mut session).await;
    let reads = between(&before, &after);
    assert_found(&reads, 8 * (20 * 8 + 100));
    assert!(reads["streams"].1 > 20 * 4 + 100, "{reads:?}");
}

/// How long anything may take that somebody else has to do.
const LIMIT: Duration = Duration::from_secs(60);

/// A session is listed until it has handed over what it has counted.
async fn hands_over(session: &mut PgConnection) {
    let open = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'sequor'";
    while sqlx::query_scalar::<_, i64>(open).fetch_one(&mut *session).await.unwrap() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Seven commits, one after the other.
async fn alone(store: &PostgresStore, n: u64) {
    let id = format!("alone{n}");
    fresh(commit(store, keyed(&format!("a{n}"), &id, 0)).await);
    fresh(commit(store, keyed(&format!("b{n}"), &id, 1)).await);
    let known = commit(store, keyed(&format!("a{n}"), &id, 0)).await;
    assert!(matches!(known, Ok(Committed::Known(_))), "{known:?}");
    let late = commit(store, checked(draft(tenant(1), &id, 1))).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
    fresh(commit(store, changing(&id, 2, hold(&format!("x{n}")))).await);
    let taken = commit(store, changing("other", 0, hold(&format!("x{n}")))).await;
    assert!(matches!(taken, Err(StoreError::UniqueTaken { .. })), "{taken:?}");
    let email = Name::new("email").unwrap();
    fresh(commit(store, changing(&id, 3, UniqueChange::Release(email))).await);
}

/// A commit under a key that is archived.
async fn expired(store: &PostgresStore, n: u64) {
    let expired = commit(store, keyed(&format!("gone-{n}"), "other", 0)).await;
    let is_expired = |record: &Record| record.state == RecordState::Expired;
    assert!(matches!(&expired, Ok(Committed::Known(known)) if is_expired(known)), "{expired:?}");
}

/// A commit on two streams, of which one changes its value, and the other lets go of it.
fn together(n: u64) -> Commit {
    let mut one = with_key(draft(tenant(1), &format!("many{n}"), 1), &format!("k{n}"));
    one.streams.push(StreamDraft {
        stream: stream(&format!("many{}", n + 100)),
        unique: vec![UniqueChange::ReleaseAll],
        ..one.streams[0].clone()
    });
    one.streams[0].unique.push(hold(&format!("w{n}")));
    checked(one)
}

fn hold(value: &str) -> UniqueChange {
    UniqueChange::Hold(UniqueKey::new(Name::new("email").unwrap(), value).unwrap())
}

fn changing(id: &str, expected: u64, change: UniqueChange) -> Commit {
    let mut one = draft(tenant(1), id, expected);
    one.streams[0].unique.push(change);
    checked(one)
}
