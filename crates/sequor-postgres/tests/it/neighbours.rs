//! A batch never waits for somebody else's lock on behalf of one of its commands.

use std::time::{Duration, Instant};

use sequor_core::commit::StreamDraft;
use sequor_core::ports::{Committed, Transact, Transaction};
use sequor_core::{Commit, Name, Projections, StoreError, UniqueChange, UniqueKey, Version};
use sequor_postgres::PostgresStore;
use sequor_testserver::Database;
use sqlx::PgConnection;
use tokio::task::JoinSet;

use crate::support::{
    checked, commit, count, deposit, draft, fresh, installed, key, keyed, open, settings, stream,
    tenant, with_key,
};

/// How long the stranger holds its lock at least.
const HELD: Duration = Duration::from_secs(3);
/// What the slowest of a hundred neighbours may take. On a machine that is busy otherwise: three times
/// what as many callers take at the same time in a database where nobody holds anything.
const P99_MAX: Duration = Duration::from_millis(50);

/// Another process in the middle of a transaction.
async fn stranger(database: &Database, sql: &'static str) -> PgConnection {
    let mut session = database.session().await;
    sqlx::raw_sql("BEGIN").execute(&mut session).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut session).await.unwrap();
    session
}

const CLAIM: &str = "INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
    VALUES ('018f2f6e-0000-7000-8000-000000000001', 'held', gen_random_uuid())";
const HOLD_STREAM: &str = "SELECT FROM sequor.streams WHERE aggregate_id = 'held' FOR UPDATE";
const MAKE_STREAM: &str = "INSERT INTO sequor.streams VALUES
    ('018f2f6e-0000-7000-8000-000000000001', 'account', 'held', 1, gen_random_uuid())";

/// 49 callers who commit on streams of their own as long as the lock is held; what the slowest of a
/// hundred commits took.
async fn neighbours(store: &PostgresStore) -> Duration {
    let (start, mut callers) = (Instant::now(), JoinSet::new());
    for caller in 0..49 {
        let store = store.clone();
        callers.spawn(async move {
            let (id, mut version, mut took) = (format!("n{caller}"), 0, Vec::new());
            while start.elapsed() < HELD {
                let before = Instant::now();
                let one = keyed(&format!("{id}-{version}"), &id, version);
                fresh(commit(&store, one).await);
                took.push(before.elapsed());
                version += 1;
            }
            took
        });
    }
    let mut all = callers.join_all().await.concat();
    all.sort_unstable();
    all[all.len() * 99 / 100]
}

/// While a stranger holds what some need, 49 neighbours go on as they do elsewhere.
async fn neighbours_go_on(sql: &'static str, blocked: Vec<Commit>) {
    let (database, elsewhere) = (installed().await, installed().await);
    let mut patient = settings(&database);
    patient.lock_wait_max = Duration::from_secs(60);
    let (store, calm) = (PostgresStore::open(patient).await.unwrap(), open(&elsewhere).await);
    if sql == HOLD_STREAM {
        fresh(commit(&store, deposit("held", 0)).await);
    }
    let mut stranger = stranger(&database, sql).await;
    let mut waiting = JoinSet::new();
    for one in blocked {
        let store = store.clone();
        waiting.spawn(async move { commit(&store, one).await });
    }
    let (p99, calm) = tokio::join!(neighbours(&store), neighbours(&calm));
    assert!(p99 < P99_MAX.max(3 * calm), "p99 of the neighbours: {p99:?}, elsewhere: {calm:?}");
    let early = waiting.try_join_next();
    assert!(early.is_none(), "who needs the lock waits for it: {early:?}");
    sqlx::raw_sql("ROLLBACK").execute(&mut stranger).await.unwrap();
    let answers = waiting.join_all().await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let (alone, count) = (store.stats().alone, answers.len());
    assert!(alone >= u64::try_from(count).unwrap(), "{alone} of {count} went alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_that_a_stranger_holds_delays_no_neighbour() {
    // One after the other, so that many batches have somebody who must wait.
    let blocked = (0..20).map(|n| keyed("held", &format!("other{n}"), 0));
    neighbours_go_on(CLAIM, blocked.collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stream_that_a_stranger_holds_delays_no_neighbour() {
    neighbours_go_on(HOLD_STREAM, vec![deposit("held", 1)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stream_that_a_stranger_is_making_delays_no_neighbour() {
    neighbours_go_on(MAKE_STREAM, vec![deposit("held", 0)]).await;
}

/// The stranger commits the key: the waiter is answered by its record, in the same call.
#[tokio::test]
async fn who_waits_for_a_key_is_answered_when_its_rival_commits() {
    let database = installed().await;
    let (one, two) = (open(&database).await, open(&database).await);
    let first = keyed("k", "a", 0);
    let mut rival = one.begin(first.meta.tenant).await.unwrap();
    assert!(rival.claim(first.meta.tenant, &key("k")).await.unwrap().is_none());
    let waiting = tokio::spawn(async move { commit(&two, keyed("k", "b", 0)).await });
    rival.write(first.clone(), &Projections::none()).await.unwrap();
    rival.commit().await.unwrap();
    match waiting.await.unwrap() {
        Ok(Committed::Known(record)) => assert_eq!(record.command_id, first.meta.command_id),
        other => panic!("not known: {other:?}"),
    }
}

/// A wait has an end, and it is `Busy`.
#[tokio::test]
async fn a_lock_that_is_held_for_too_long_is_busy() {
    let database = installed().await;
    let mut settings = settings(&database);
    settings.lock_wait_max = Duration::from_millis(50);
    let store = PostgresStore::open(settings).await.unwrap();
    let _stranger = stranger(&database, CLAIM).await;
    let refused = commit(&store, keyed("held", "a", 0)).await;
    assert!(matches!(refused, Err(StoreError::Busy)), "{refused:?}");
    fresh(commit(&store, deposit("a", 0)).await);
}

/// What cannot be stored fails by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bad_row_fails_only_itself() {
    let database = installed().await;
    let store = open(&database).await;
    database.run("ALTER TABLE sequor.events ADD CHECK (aggregate_id <> 'bad')").await;
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        let id = if n == 7 { "bad".to_owned() } else { format!("a{n}") };
        callers.spawn(async move { (n, commit(&store, keyed(&id, &id, 0)).await) });
    }
    for (n, committed) in callers.join_all().await {
        match n {
            7 => assert!(matches!(committed, Err(StoreError::Corrupt { .. })), "{committed:?}"),
            _ => drop(fresh(committed)),
        }
    }
    assert_eq!(count(&database, "SELECT count(*) FROM sequor.idempotency_keys").await, 19);
}

/// Two transactions that write the same streams in opposite order: the one that is late in the order
/// of streams gives way before the server looks for a circle.
#[tokio::test]
async fn transactions_never_deadlock_on_streams() {
    let database = installed().await;
    let store = open(&database).await;
    for id in ["a", "b"] {
        fresh(commit(&store, deposit(id, 0)).await);
    }
    let (mut one, mut two) =
        (store.begin(tenant(1)).await.unwrap(), store.begin(tenant(1)).await.unwrap());
    one.write(deposit("a", 1), &Projections::none()).await.unwrap();
    two.write(deposit("b", 1), &Projections::none()).await.unwrap();
    let waiting = tokio::spawn(async move {
        one.write(deposit("b", 1), &Projections::none()).await.unwrap();
        one.commit().await.unwrap().len()
    });
    let refused = two.write(deposit("a", 1), &Projections::none()).await;
    assert!(matches!(refused, Err(StoreError::Busy)), "{refused:?}");
    drop(two);
    assert_eq!(waiting.await.unwrap(), 2);
    assert_eq!(store.stats().deadlocks, 0);
}

/// Two processes that take the same keys, streams and values in any order never deadlock on them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_never_deadlock_on_what_is_ours() {
    let database = installed().await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let mut callers = JoinSet::new();
    for process in 0..2_u64 {
        let store = open(&database).await;
        for caller in 0..16_u64 {
            let store = store.clone();
            callers.spawn(async move {
                for n in 0..20_u64 {
                    let mut one = draft(tenant(1), &format!("s{}", (n * 7 + caller) % 10), 0);
                    for other in 1..3 {
                        let id = format!("s{}", (n * 7 + caller + other * 3) % 10);
                        one.streams.push(StreamDraft {
                            stream: stream(&id),
                            expected: Version::NONE,
                            after: None,
                            unique: Vec::new(),
                        });
                    }
                    let scope = Name::new("seat").unwrap();
                    let value = format!("v{}", (n + caller * process) % 5);
                    let seat = UniqueKey::new(scope, &value).unwrap();
                    one.streams[0].unique.push(UniqueChange::Hold(seat));
                    let one = checked(with_key(one, &format!("k{}", (n + caller) % 12)));
                    match commit(&store, one).await {
                        Ok(_)
                        | Err(StoreError::Conflict { .. } | StoreError::UniqueTaken { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    }
    callers.join_all().await;
    assert_eq!(count(&database, deadlocks).await, 0);
}
