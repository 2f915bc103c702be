//! What a command costs on the wire to PostgreSQL, counted by a proxy: round trips and statements,
//! in sessions that are warm.

use std::sync::Arc;

use sequor::Error;
use sequor::ports::{Transact, Transaction};
use sequor::postgres::{PostgresSettings, PostgresStore, install};
use sequor_testserver::{Counts, Database, Proxy, server};

use crate::bank::{Account, Ask, Bank, bank, deposit, keyed, meta, open, tenant};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

const BUS: &str = "sequor_test_bus";

/// A database, and a proxy before it that counts.
struct Wire {
    proxy: Proxy,
    store: Watched<PostgresStore>,
}

impl Wire {
    async fn new() -> Self {
        let database = Database::new().await;
        install(&PostgresSettings::new(database.owner())).await.unwrap();
        database.make_role(BUS, "sequor_app, sequor_system").await;
        let sums = "CREATE TABLE sums (tenant_id uuid PRIMARY KEY, amount bigint NOT NULL);
            SELECT sequor.wall('sums')";
        database.run(sums).await;
        let proxy = Proxy::start(&server::url()).unwrap();
        let through = database.role(BUS).host("127.0.0.1").port(proxy.port());
        let mut settings = PostgresSettings::new(through);
        // One session of each kind, so that what was warmed is what is counted.
        (settings.connections_max, settings.writers_max) = (2, 1);
        let store = PostgresStore::open(settings).await.unwrap();
        Self { proxy, store: Watched::over(store, Arc::new(database)) }
    }

    /// A bank with a handler that loads one aggregate and writes one row of its own; everything it
    /// will be asked for was asked for before.
    async fn warm(&self, aggregates_cached_max: usize) -> Bank<PostgresStore> {
        let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
            Box::pin(async move {
                let account = repo.load::<Account>("a").await?;
                PostgresStore::add(repo.connection()?, tenant(1), run.cents).await.unwrap();
                Ok(i64::try_from(repo.version(account).get()).unwrap())
            })
        });
        let bank = bank(&self.store).handler(handler);
        let bank = bank.aggregates_cached_max(aggregates_cached_max).build().unwrap();
        open(&bank, &["a"]).await;
        bank.execute(deposit("a", 1), keyed("warm")).await.unwrap();
        bank.execute(deposit("a", 1), keyed("warm")).await.unwrap();
        bank.execute(run(&[], 1), keyed("warm-handler")).await.unwrap();
        bank.execute(run(&[], 1), keyed("warm-handler-2")).await.unwrap();
        self.settle().await;
        bank
    }

    /// Waits for what the store does behind everybody's back: a session that user code has had is
    /// cleaned, and whoever takes it next has waited for that.
    async fn settle(&self) {
        let mut loans = Vec::new();
        for _ in 0..2 {
            loans.push(self.store.inner.begin(tenant(1)).await.unwrap());
        }
        for transaction in loans {
            transaction.commit().await.unwrap();
        }
    }

    async fn count<T>(&self, call: impl Future<Output = T>) -> (T, Counts) {
        self.proxy.reset();
        let answer = call.await;
        (answer, self.proxy.counts())
    }
}

#[tokio::test]
async fn a_hot_keyed_decider_is_one_round_trip() {
    let wire = Wire::new().await;
    let bank = wire.warm(1_000).await;
    let (receipt, counts) = wire.count(bank.execute(deposit("a", 1), keyed("k"))).await;
    assert!(receipt.unwrap().is_executed());
    assert_eq!((counts.round_trips, counts.statements()), (1, 1), "{counts:?}");
}

#[tokio::test]
async fn a_cold_keyed_decider_is_two_round_trips() {
    let wire = Wire::new().await;
    let bank = wire.warm(0).await;
    let (receipt, counts) = wire.count(bank.execute(deposit("a", 1), keyed("k"))).await;
    assert!(receipt.unwrap().is_executed());
    assert_eq!((counts.round_trips, counts.statements()), (2, 2), "{counts:?}");
}

#[tokio::test]
async fn a_replay_is_one_round_trip() {
    for cached in [0, 1_000] {
        let wire = Wire::new().await;
        let bank = wire.warm(cached).await;
        let (receipt, counts) = wire.count(bank.execute(deposit("a", 1), keyed("warm"))).await;
        assert!(receipt.unwrap().is_replayed());
        assert_eq!((counts.round_trips, counts.statements()), (1, 1), "{counts:?}");
    }
}

/// The rival's record comes with the answer to the claim that it has won.
#[tokio::test]
async fn a_replay_after_a_lost_race_is_one_round_trip() {
    let wire = Wire::new().await;
    let bank = wire.warm(1_000).await;
    // Another process, which this one's cache knows nothing of.
    let other = Wire { proxy: Proxy::start(&server::url()).unwrap(), store: wire.store.clone() };
    let elsewhere = crate::bank::bank(&other.store).build().unwrap();
    elsewhere.execute(deposit("a", 1), keyed("raced")).await.unwrap();
    let (receipt, counts) = wire.count(bank.execute(deposit("a", 1), keyed("raced"))).await;
    assert!(receipt.unwrap().is_replayed());
    assert_eq!((counts.round_trips, counts.statements()), (1, 1), "{counts:?}");
}

#[tokio::test]
async fn a_create_is_one_round_trip() {
    let wire = Wire::new().await;
    let bank = wire.warm(1_000).await;
    let (receipt, counts) = wire.count(bank.execute(create("new"), keyed("k"))).await;
    assert!(receipt.unwrap().is_executed());
    assert_eq!((counts.round_trips, counts.statements()), (1, 1), "{counts:?}");
}

/// The commit finds out; then it is decided on what is there, and refused once the key was looked up.
#[tokio::test]
async fn a_create_of_what_is_there_is_refused_in_three_round_trips() {
    let wire = Wire::new().await;
    let bank = wire.warm(0).await;
    let (receipt, counts) = wire.count(bank.execute(create("a"), keyed("k"))).await;
    assert!(matches!(receipt, Err(Error::Rejected(_))), "{receipt:?}");
    assert_eq!(counts.round_trips, 3, "{counts:?}");
}

fn create(account: &str) -> Ask {
    Ask::Open { account: account.to_owned() }
}

/// Begin, claim, load, the own statement, write, commit.
#[tokio::test]
async fn a_handler_with_a_load_and_a_statement_is_six_round_trips() {
    let wire = Wire::new().await;
    let bank = wire.warm(1_000).await;
    let (receipt, mut counts) = wire.count(bank.execute(run(&[], 1), keyed("k"))).await;
    assert!(receipt.unwrap().is_executed());
    // The session's cleaning may have been counted already; nobody waits for it.
    counts.round_trips -= u64::from(counts.round_trips == 7);
    assert_eq!(counts.round_trips, 6, "{counts:?}");
}

#[tokio::test]
async fn a_replay_of_a_handler_is_three_round_trips() {
    let wire = Wire::new().await;
    let bank = wire.warm(1_000).await;
    let (receipt, counts) = wire.count(bank.execute(run(&[], 1), keyed("warm-handler"))).await;
    assert!(receipt.unwrap().is_replayed());
    assert!(counts.round_trips <= 3, "{counts:?}");
}

/// Without a key nothing is claimed.
#[tokio::test]
async fn a_hot_decider_without_a_key_is_one_round_trip() {
    let wire = Wire::new().await;
    let bank = wire.warm(1_000).await;
    let (receipt, counts) = wire.count(bank.execute(deposit("a", 1), meta())).await;
    assert!(receipt.unwrap().is_executed());
    assert_eq!((counts.round_trips, counts.statements()), (1, 1), "{counts:?}");
}

/// Thirty-two callers share trips.
#[tokio::test]
async fn many_callers_share_round_trips() {
    let wire = Wire::new().await;
    let bank = wire.warm(1_000).await;
    let calls = (0..320).map(|n| {
        let bank = bank.clone();
        async move { bank.execute(deposit("a", 1), keyed(&format!("k{n}"))).await.unwrap() }
    });
    let (_, counts) = wire.count(futures_join(calls)).await;
    assert!(counts.round_trips < 320 / 4, "{counts:?}");
}

async fn futures_join<F>(calls: impl Iterator<Item = F>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut tasks: tokio::task::JoinSet<_> = calls.collect();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
