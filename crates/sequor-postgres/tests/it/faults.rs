//! What goes wrong on the way: lost answers, cut connections, dropped futures, swallowed errors,
//! odd settings of the server.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed, Transact, Transaction};
use sequor_core::{Projection, ProjectionError, Projections, StoreError, StoredEvent};
use sequor_postgres::PostgresStore;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::support::{
    checked, commit, count, deposit, draft, fresh, installed, key, keyed, open, proxied, record,
    settings, tenant,
};

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_key_tells() {
    let database = installed().await;
    let (proxy, store) = proxied(&database).await;
    fresh(commit(&store, deposit("a", 0)).await);
    proxy.cut_before_answer(1);
    let lost = commit(&store, keyed("k", "a", 1)).await;
    assert!(matches!(lost, Err(StoreError::Unknown)), "{lost:?}");
    match commit(&store, keyed("k", "a", 1)).await {
        Ok(Committed::Known(_)) => {}
        other => panic!("it had become true: {other:?}"),
    }
    assert_eq!(count(&database, "SELECT count(*) FROM sequor.events").await, 2);
}

#[tokio::test]
async fn a_lost_answer_to_a_handlers_commit_is_unknown_and_the_key_tells() {
    let database = installed().await;
    let (proxy, store) = proxied(&database).await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    assert_eq!(transaction.claim(tenant(1), &key("k")).await.unwrap(), None);
    transaction.write(keyed("k", "a", 0), &Projections::none()).await.unwrap();
    proxy.cut_before_answer(1);
    let lost = transaction.commit().await;
    assert!(matches!(lost, Err(StoreError::Unknown)), "{lost:?}");
    assert!(record(&store, "k").await.is_some());
}

/// A projection that looks, and leaves everything as it is.
struct Onlooker;

#[async_trait]
impl Projection<PgConnection> for Onlooker {
    fn name(&self) -> &str {
        "onlooker"
    }

    async fn project(
        &self,
        _event: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        sqlx::raw_sql("SELECT").execute(connection).await?;
        Ok(())
    }
}

/// Whichever answer gets lost on the way of a commit with projections: `Unavailable` is said only
/// where nothing was written.
#[tokio::test]
async fn a_commit_with_projections_whose_answer_is_lost_is_unknown() {
    let database = installed().await;
    let (proxy, store) = proxied(&database).await;
    let onlooker = Projections(std::sync::Arc::new([std::sync::Arc::new(Onlooker) as _]));
    let mut written_and_unknown = 0;
    // The cleaning of the session behind the first commit may or may not be counted in between.
    for (n, lost) in (1..=10).cycle().take(50).enumerate() {
        let (id, text) = (format!("a{n}"), format!("k{n}"));
        fresh(store.commit(deposit(&id, 0), &onlooker).await);
        proxy.cut_before_answer(lost);
        let answer = store.commit(keyed(&text, &id, 1), &onlooker).await;
        proxy.cut_before_answer(0);
        let is_written = record(&store, &text).await.is_some();
        match answer {
            Ok(_) => assert!(is_written, "{lost}"),
            Err(StoreError::Unavailable(_)) => assert!(!is_written, "{lost}"),
            Err(StoreError::Unknown) => written_and_unknown += u32::from(is_written),
            Err(error) => panic!("{lost}: {error}"),
        }
    }
    assert!(written_and_unknown > 0, "the answer to a COMMIT got lost");
}

#[tokio::test]
async fn a_cut_before_the_commit_leaves_nothing() {
    let database = installed().await;
    let (proxy, store) = proxied(&database).await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    transaction.write(keyed("k", "a", 0), &Projections::none()).await.unwrap();
    proxy.cut();
    let lost = transaction.commit().await;
    assert!(matches!(lost, Err(StoreError::Unknown)), "{lost:?}");
    let store = open(&database).await;
    assert_eq!(record(&store, "k").await, None);
    fresh(commit(&store, keyed("k", "a", 0)).await);
}

/// Callers in the midst of a network that fails again and again: each commit is retried with its key
/// until it is answered, and is there once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_lose_and_double_nothing() {
    let database = installed().await;
    let (proxy, store) = proxied(&database).await;
    let mut callers = JoinSet::new();
    let (answered, mut answers) = mpsc::unbounded_channel();
    for caller in 0..16 {
        let (store, answered) = (store.clone(), answered.clone());
        callers.spawn(async move {
            let mut troubles = 0;
            for n in 0..30 {
                let id = format!("c{caller}");
                loop {
                    match commit(&store, keyed(&format!("{id}-{n}"), &id, n)).await {
                        Ok(_) => break,
                        Err(StoreError::Unknown | StoreError::Unavailable(_)) => troubles += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                answered.send(()).ok();
            }
            troubles
        });
    }
    drop(answered);
    let mut since_cut = 0;
    while answers.recv().await.is_some() {
        since_cut += 1;
        if since_cut == 25 {
            since_cut = 0;
            proxy.cut();
        }
    }
    let troubles: i32 = callers.join_all().await.into_iter().sum();
    assert!(troubles > 0, "the cuts were felt");
    assert_eq!(count(&database, "SELECT count(*) FROM sequor.events").await, 16 * 30);
    assert_eq!(count(&database, "SELECT count(*) FROM sequor.idempotency_keys").await, 16 * 30);
}

/// A caller that gives up at any moment leaves no session in a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_give_up_leave_no_transaction_open() {
    let database = installed().await;
    let store = open(&database).await;
    let mut chance = 0x2545_f491_4f6c_dd1d_u64;
    for n in 0..300 {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let patience = Duration::from_micros(chance % 2_000);
        let store = store.clone();
        let call = async move {
            let mut transaction = store.begin(tenant(1)).await.unwrap();
            let one = checked(draft(tenant(1), &format!("d{n}"), 0));
            transaction.write(one, &Projections::none()).await.unwrap();
            transaction.commit().await.unwrap();
        };
        let mut call = Box::pin(call);
        let gave_up = Instant::now() + patience;
        // Polled by hand: timers count in milliseconds.
        std::future::poll_fn(|context| {
            if call.as_mut().poll(context).is_ready() || Instant::now() >= gave_up {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
    }
    for n in 0..100 {
        fresh(commit(&store, keyed(&format!("k{n}"), "after", n)).await);
    }
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND state LIKE 'idle in transaction%'";
    // The last rollbacks are under way; the server itself ends nothing before `idle_time_max`.
    let asked = Instant::now();
    while count(&database, open).await > 0 {
        assert!(asked.elapsed() < Duration::from_secs(15), "a transaction was left open");
    }
    assert_eq!(
        record(&store, "k99").await.map(|record| record.streams[0].version.get()),
        Some(100)
    );
}

#[tokio::test]
async fn an_error_that_user_code_swallows_commits_nothing() {
    let database = installed().await;
    let store = open(&database).await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    transaction.write(keyed("k", "a", 0), &Projections::none()).await.unwrap();
    sqlx::query("SELECT 1 / 0").execute(transaction.connection()).await.unwrap_err();
    assert!(transaction.commit().await.is_err());
    assert_eq!(record(&store, "k").await, None);
}

#[tokio::test]
async fn a_commit_by_user_code_is_noticed() {
    let database = installed().await;
    let store = open(&database).await;
    for sql in ["COMMIT", "ROLLBACK", "ROLLBACK; BEGIN", "COMMIT; BEGIN"] {
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        sqlx::raw_sql(sql).execute(transaction.connection()).await.unwrap();
        let refused = transaction.write(keyed("k", "a", 0), &Projections::none()).await;
        assert!(refused.is_err(), "{sql}");
        assert!(transaction.commit().await.is_err(), "{sql}");
        assert_eq!(record(&store, "k").await, None, "{sql}");
    }
}

/// A `begin` of user code is a savepoint of ours.
#[tokio::test]
async fn user_code_may_nest_transactions() {
    let database = installed().await;
    let store = open(&database).await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let mut nested = transaction.connection().begin().await.unwrap();
    sqlx::query("SELECT 1 / 0").execute(&mut *nested).await.unwrap_err();
    nested.rollback().await.unwrap();
    transaction.write(keyed("k", "a", 0), &Projections::none()).await.unwrap();
    transaction.commit().await.unwrap();
    assert!(record(&store, "k").await.is_some());
}

#[tokio::test]
async fn the_servers_default_isolation_changes_nothing() {
    let database = installed().await;
    let set = format!(
        "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'",
        database.name()
    );
    database.run(&set).await;
    let store = open(&database).await;
    let two = open(&database).await;
    let mut rival = store.begin(tenant(1)).await.unwrap();
    assert_eq!(rival.claim(tenant(1), &key("k")).await.unwrap(), None);
    let waiting = tokio::spawn(async move { commit(&two, keyed("k", "b", 0)).await });
    rival.write(keyed("k", "a", 0), &Projections::none()).await.unwrap();
    rival.commit().await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Ok(Committed::Known(_))));
}

/// A pool of two, and many handlers: each has its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_small_pool_serves_many_handlers() {
    let database = installed().await;
    let mut settings = settings(&database);
    settings.connections_max = 2;
    let store = PostgresStore::open(settings).await.unwrap();
    let mut handlers = JoinSet::new();
    for n in 0..32 {
        let store = store.clone();
        handlers.spawn(async move {
            let mut transaction = store.begin(tenant(1)).await.unwrap();
            let text = format!("k{n}");
            assert_eq!(transaction.claim(tenant(1), &key(&text)).await.unwrap(), None);
            let one = keyed(&text, &format!("a{n}"), 0);
            transaction.write(one, &Projections::none()).await.unwrap();
            transaction.commit().await.unwrap();
        });
    }
    handlers.join_all().await;
    assert_eq!(count(&database, "SELECT count(*) FROM sequor.events").await, 32);
}

#[tokio::test]
async fn a_closed_store_is_unavailable() {
    let database = installed().await;
    let store = open(&database).await;
    fresh(commit(&store, deposit("a", 0)).await);
    store.close().await;
    let refused = commit(&store, deposit("a", 1)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let refused = store.begin(tenant(1)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    let mine = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sequor'
        AND datname = current_database()";
    assert_eq!(count(&database, mine).await, 0);
}

/// A command that was submitted when the store closes is finished.
#[tokio::test]
async fn closing_finishes_what_was_submitted() {
    let database = installed().await;
    let store = open(&database).await;
    let submitted = store.submit(keyed("k", "a", 0), &Projections::none()).await.unwrap();
    store.close().await;
    assert!(matches!(submitted.await, Ok(Committed::Fresh(_))));
}

/// A projection that leaves something in the writer's session.
struct Careless;

#[async_trait]
impl Projection<PgConnection> for Careless {
    fn name(&self) -> &str {
        "careless"
    }

    async fn project(
        &self,
        _event: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        let leave = "SET SESSION search_path = nowhere; SET SESSION lock_timeout = 1;
            SELECT pg_advisory_lock(4712)";
        sqlx::raw_sql(leave).execute(&mut *connection).await?;
        // Session-wide as well, and the same for this transaction.
        let tenant = "SET SESSION sequor.tenant = '018f2f6e-0000-7000-8000-000000000001'";
        sqlx::raw_sql(tenant).execute(connection).await?;
        Ok(())
    }
}

#[tokio::test]
async fn what_a_projection_leaves_in_the_writers_session_is_gone() {
    let database = installed().await;
    let mut settings = settings(&database);
    settings.writers_max = 1;
    let store = PostgresStore::open(settings).await.unwrap();
    let careless = Projections(std::sync::Arc::new([std::sync::Arc::new(Careless) as _]));
    for n in 0..3 {
        fresh(store.commit(deposit("a", n), &careless).await);
        let other = draft(tenant(2), "a", n);
        fresh(commit(&store, checked(other)).await);
    }
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4712
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(count(&database, held).await, 0);
}
