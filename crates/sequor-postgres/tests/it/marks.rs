//! The mark: readers skip nothing and see every stream in order, whatever writers do, and wait for
//! nobody but writers of their own partition.

mod processes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sequor_core::ports::{CommitCommand, ReadLog, Store, Transact, Transaction};
use sequor_core::{Partition, Position, Projections, StoredEvent, TenantId};
use sequor_postgres::{PostgresStore, PostgresTransaction};
use sequor_testserver::Database;
use sqlx::PgConnection;
use tokio::task::JoinSet;

use crate::support::{
    checked, commit, deposit, draft, fresh, installed, not_tried, open, proxied, settings, tenant,
};

/// A store whose readers do not wait: what cannot be read yet is not there.
async fn hasty(database: &Database) -> PostgresStore {
    let mut settings = settings(database);
    settings.mark_wait_max = Duration::ZERO;
    PostgresStore::open(settings).await.unwrap()
}

/// A store whose readers wait as long as they may for writers that are about to end.
async fn patient(database: &Database) -> PostgresStore {
    let mut settings = settings(database);
    settings.mark_wait_max = Duration::from_secs(10);
    PostgresStore::open(settings).await.unwrap()
}

/// A transaction that has drawn a position and is held open.
async fn held(store: &PostgresStore, tenant: TenantId, id: &str) -> PostgresTransaction {
    let mut transaction = store.begin(tenant).await.unwrap();
    let one = checked(draft(tenant, id, 0));
    transaction.write(one, &Projections::none()).await.unwrap();
    transaction
}

/// Reads on until a page is empty.
async fn ids_after(store: &PostgresStore, tenant: TenantId, mut after: Position) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let page = store.read_after(store.partition(tenant), after, 1_000).await.unwrap();
        let Some(last) = page.last() else { return ids };
        after = last.position;
        ids.extend(page.iter().map(|event| event.stream.id.to_string()));
    }
}

/// Another tenant of the same partition, and one of another.
fn tenants(store: &PostgresStore) -> (TenantId, TenantId) {
    let partition = store.partition(tenant(1));
    let same = (2..).map(tenant).find(|one| store.partition(*one) == partition).unwrap();
    let other = (2..).map(tenant).find(|one| store.partition(*one) != partition).unwrap();
    (same, other)
}

#[tokio::test]
async fn a_writer_that_is_held_open_is_waited_for_and_not_skipped() {
    let database = installed().await;
    let (store, reader) = (open(&database).await, hasty(&database).await);
    let early = held(&store, tenant(1), "early").await;
    let late = fresh(commit(&store, deposit("late", 0)).await);
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, [""; 0]);
    early.commit().await.unwrap();
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["early", "late"]);
    assert_eq!(ids_after(&reader, tenant(1), late.position.unwrap()).await, [""; 0]);
}

#[tokio::test]
async fn a_writer_that_rolls_back_leaves_a_hole_and_no_stall() {
    let database = installed().await;
    let (store, reader) = (open(&database).await, hasty(&database).await);
    for _ in 0..50 {
        drop(held(&store, tenant(1), "never").await);
    }
    fresh(commit(&store, deposit("after", 0)).await);
    // A reader that waits is there when the last rollback is.
    let waiting = patient(&database).await;
    assert_eq!(ids_after(&waiting, tenant(1), Position::START).await, ["after"]);
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["after"]);
}

#[tokio::test]
async fn commits_in_the_wrong_order_are_read_in_the_right_one() {
    let database = installed().await;
    let (store, reader) = (open(&database).await, hasty(&database).await);
    let (first, second) =
        (held(&store, tenant(1), "first").await, held(&store, tenant(1), "second").await);
    let third = held(&store, tenant(1), "third").await;
    third.commit().await.unwrap();
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, [""; 0]);
    first.commit().await.unwrap();
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, [""; 0]);
    drop(second);
    let waiting = patient(&database).await;
    assert_eq!(ids_after(&waiting, tenant(1), Position::START).await, ["first", "third"]);
}

#[tokio::test]
async fn a_writer_of_another_partition_is_not_waited_for() {
    let database = installed().await;
    let (store, reader) = (open(&database).await, hasty(&database).await);
    let (same, other) = tenants(&store);
    let _open = held(&store, other, "open").await;
    fresh(commit(&store, deposit("mine", 0)).await);
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["mine"]);
    let open_here = held(&store, same, "open").await;
    fresh(commit(&store, deposit("next", 0)).await);
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["mine"]);
    open_here.commit().await.unwrap();
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["mine", "open", "next"]);
}

/// A transaction with an id of its own, as every writer has one.
async fn stranger(session: &mut PgConnection) {
    sqlx::raw_sql("BEGIN; SELECT pg_current_xact_id()").execute(session).await.unwrap();
}

#[tokio::test]
async fn long_transactions_of_strangers_stall_nobody() {
    let (database, elsewhere) = (installed().await, Database::new().await);
    let (store, reader) = (open(&database).await, hasty(&database).await);
    let (mut here, mut there) = (database.session().await, elsewhere.session().await);
    stranger(&mut here).await;
    stranger(&mut there).await;
    fresh(commit(&store, deposit("a", 0)).await);
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["a"]);
}

#[tokio::test]
async fn a_writer_that_is_killed_is_waited_for_until_it_is_gone() {
    let database = installed().await;
    let (store, reader) = (open(&database).await, patient(&database).await);
    let _dead = held(&store, tenant(1), "dead").await;
    fresh(commit(&store, deposit("alive", 0)).await);
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND mode = 'ShareLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    sqlx::raw_sql(kill).execute(&mut database.session().await).await.unwrap();
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["alive"]);
}

/// A prepared transaction has no process, and holds its lock all the same.
#[tokio::test]
async fn a_prepared_transaction_is_waited_for() {
    let database = installed().await;
    let (store, reader) = (open(&database).await, hasty(&database).await);
    let max: String = sqlx::query_scalar("SHOW max_prepared_transactions")
        .fetch_one(&mut database.session().await)
        .await
        .unwrap();
    if max == "0" {
        not_tried("the server takes no prepared transactions");
        return;
    }
    let mut prepared = held(&store, tenant(1), "prepared").await;
    sqlx::raw_sql("PREPARE TRANSACTION 'held'").execute(prepared.connection()).await.unwrap();
    fresh(commit(&store, deposit("late", 0)).await);
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, [""; 0]);
    database.run("COMMIT PREPARED 'held'").await;
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["prepared", "late"]);
}

/// A writer in the midst of everything: each of its draws may be held, rolled back, or late.
async fn write_some(store: PostgresStore, writer: u64) -> BTreeSet<(String, u64)> {
    let mut chance = writer.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut written = BTreeSet::new();
    let (id, mut version) = (format!("w{writer}"), 0);
    for _ in 0..60 {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let one = checked(draft(tenant(u128::from(writer % 5)), &id, version));
        let mut transaction = store.begin(one.meta.tenant).await.unwrap();
        if chance.is_multiple_of(3) {
            fresh(store.commit(one, &Projections::none()).await);
        } else {
            transaction.write(one, &Projections::none()).await.unwrap();
            let pause = format!(
                "SELECT pg_sleep({})",
                f64::from(u8::try_from(chance % 20).unwrap()) / 1_000.0
            );
            let pause = sqlx::raw_sql(sqlx::AssertSqlSafe(pause));
            pause.execute(transaction.connection()).await.unwrap();
            if chance.is_multiple_of(5) {
                continue;
            }
            transaction.commit().await.unwrap();
        }
        version += 1;
        written.insert((id.clone(), version));
    }
    written
}

/// Follows a partition until told to stop and nothing is left.
async fn follow(
    store: PostgresStore,
    partition: Partition,
    mut over: tokio::sync::watch::Receiver<bool>,
) -> Vec<StoredEvent> {
    let (mut seen, mut after) = (Vec::new(), Position::START);
    loop {
        let is_over = *over.borrow_and_update();
        let page = store.read_after(partition, after, 7).await.unwrap();
        let Some(last) = page.last() else {
            if is_over {
                return seen;
            }
            tokio::task::yield_now().await;
            continue;
        };
        after = last.position;
        seen.extend(page);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn followers_see_everything_once_and_in_order() {
    let database = installed().await;
    let (store, other) = (open(&database).await, open(&database).await);
    let reader = open(&database).await;
    let (over, is_over) = tokio::sync::watch::channel(false);
    let partitions: BTreeSet<Partition> = (0..5).map(|n| store.partition(tenant(n))).collect();
    let mut followers = JoinSet::new();
    for partition in partitions {
        followers.spawn(follow(reader.clone(), partition, is_over.clone()));
    }
    let mut writers = JoinSet::new();
    for writer in 0..12 {
        let store = if writer % 2 == 0 { &store } else { &other };
        writers.spawn(write_some(store.clone(), writer));
    }
    let written: BTreeSet<_> = writers.join_all().await.into_iter().flatten().collect();
    over.send(true).unwrap();
    let mut seen = BTreeSet::new();
    for events in followers.join_all().await {
        assert!(events.is_sorted_by(|one, two| one.position < two.position));
        let mut versions: BTreeMap<_, u64> = BTreeMap::new();
        for event in events {
            let version = versions.entry(event.stream.clone()).or_default();
            *version += 1;
            assert_eq!(event.version.get(), *version, "in {}", event.stream);
            assert!(seen.insert((event.stream.id.to_string(), event.version.get())), "seen twice");
        }
    }
    assert_eq!(seen, written);
}

/// How far positions lie apart is no matter: a page is a round trip, and so is its end; a known mark
/// costs none.
#[tokio::test]
async fn a_reader_with_a_far_start_and_holes_asks_no_more_than_another() {
    let database = installed().await;
    let (proxy, reader) = proxied(&database).await;
    let store = open(&database).await;
    fresh(commit(&store, deposit("near", 0)).await);
    assert_eq!(ids_after(&reader, tenant(1), Position::START).await, ["near"]);
    let mut trips = Vec::new();
    for hole in ["1", "10000000", "20000000"] {
        database
            .run(&format!(
                "SELECT setval('sequor.positions', {hole} + last_value)
            FROM sequor.positions"
            ))
            .await;
        let last = fresh(commit(&store, deposit(&format!("after {hole}"), 0)).await);
        proxy.reset();
        let read = ids_after(&reader, tenant(1), Position::START).await;
        assert_eq!(read.len(), 2 + trips.len());
        assert_eq!(ids_after(&reader, tenant(1), last.position.unwrap()).await, [""; 0]);
        trips.push(proxy.counts().round_trips);
    }
    assert!(trips.iter().all(|one| *one == trips[0]), "{trips:?}");
}
