//! A key that is past its retention, through the bus: the caller is told so, in every mode, and
//! nothing runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sequor::postgres::{PostgresSettings, PostgresStore, install};
use sequor::record::RecordState;
use sequor::{Batch, Command, CommandId, Error, Meta, Mode, Options};
use sequor_testserver::Database;

use crate::bank::{Bank, bank, cents, deposit, key, keyed, log_of, look, meta, open, tenant};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home as _;
use crate::watched::Watched;

const BUS: &str = "sequor_test_bus";
const MODES: [Mode; 3] = [Mode::NoOp, Mode::Strict, Mode::Output];

/// A bank in which one command of a decider and one of a handler have been done, so long ago that
/// their keys are archived.
struct Old {
    bank: Bank<PostgresStore>,
    store: Watched<PostgresStore>,
    /// How often the handler ran.
    runs: Arc<AtomicUsize>,
    decided: CommandId,
    handled: CommandId,
}

impl Old {
    /// With a warm cache of aggregates, or without one.
    async fn new(aggregates_cached_max: usize) -> Self {
        let database = Arc::new(Database::new().await);
        let store = store(&database).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&runs);
        let handler = doing(move |run: &Run, repo| -> Handling<'_, Run> {
            counts.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                let tenant = repo.tenant();
                PostgresStore::add(repo.connection()?, tenant, run.cents).await.unwrap();
                Ok(run.cents)
            })
        });
        let bank = bank(&store).aggregates_cached_max(aggregates_cached_max).handler(handler);
        let bank = bank.build().unwrap();
        open(&bank, &["a"]).await;
        let decided = bank.execute(deposit("a", 20), keyed("decided")).await.unwrap().command_id;
        let handled = bank.execute(run(&[], 7), keyed("handled")).await.unwrap().command_id;
        let age = "UPDATE sequor.idempotency_keys SET claimed_at = claimed_at - interval '91 days'";
        database.run(age).await;
        assert_eq!(store.inner.reap_keys(100).await.unwrap(), 2);
        Self { bank, store, runs, decided, handled }
    }

    /// Nothing has happened since.
    async fn assert_nothing_ran(&self) {
        assert_eq!(self.runs.load(Ordering::SeqCst), 1);
        assert_eq!(self.store.inner.sum(tenant(1)).await, 7);
        assert_eq!(log_of(&self.store, tenant(1)).await.len(), 2);
        assert_eq!(cents(&self.bank, "a").await, 20);
    }
}

async fn store(database: &Arc<Database>) -> Watched<PostgresStore> {
    install(&PostgresSettings::new(database.owner())).await.unwrap();
    database.make_role(BUS, "sequor_app, sequor_system").await;
    let sums = "CREATE TABLE sums (tenant_id uuid PRIMARY KEY, amount bigint NOT NULL);
        SELECT sequor.wall('sums')";
    database.run(sums).await;
    let store = PostgresStore::open(PostgresSettings::new(database.role(BUS))).await.unwrap();
    Watched::over(store, Arc::clone(database) as _)
}

/// The command that an expired key has named.
fn expired<T: std::fmt::Debug, R: std::fmt::Debug>(answer: Result<T, Error<R>>) -> CommandId {
    match answer {
        Err(Error::KeyExpired { command_id }) => command_id,
        other => panic!("not expired: {other:?}"),
    }
}

/// The command that a key has named which is used for something else.
fn reused<T: std::fmt::Debug, R: std::fmt::Debug>(answer: Result<T, Error<R>>) -> CommandId {
    match answer {
        Err(Error::KeyReused { command_id, .. }) => command_id,
        other => panic!("not reused: {other:?}"),
    }
}

#[tokio::test]
async fn an_expired_key_is_told_in_every_mode_and_nothing_runs() {
    for cached in [0, 1_000] {
        let old = Old::new(cached).await;
        for mode in MODES {
            let options = Options::default().mode(mode);
            let decided = old.bank.execute_with(deposit("a", 20), keyed("decided"), options).await;
            assert_eq!(expired(decided), old.decided, "{mode:?}");
            let handled = old.bank.execute_with(run(&[], 7), keyed("handled"), options).await;
            assert_eq!(expired(handled), old.handled, "{mode:?}");
        }
        assert_eq!(
            expired(old.bank.execute(deposit("a", 20), keyed("decided")).await),
            old.decided
        );
        old.assert_nothing_ran().await;
    }
}

#[tokio::test]
async fn an_expired_key_in_a_batch_is_told_and_the_others_do_not_run() {
    let old = Old::new(1_000).await;
    for mode in MODES {
        let options = Options::default().mode(mode);
        let batch = || Batch::new().then(deposit("a", 1), keyed("fresh"));
        let decided = batch().then_with(deposit("a", 20), keyed("decided"), options);
        assert_eq!(expired(old.bank.execute_all(decided).await), old.decided, "{mode:?}");
        let handled = batch().then_with(run(&[], 7), keyed("handled"), options);
        assert_eq!(expired(old.bank.execute_all(handled).await), old.handled, "{mode:?}");
    }
    assert!(old.bank.outcome(tenant(1), &key("fresh")).await.unwrap().is_none());
    old.assert_nothing_ran().await;
}

#[tokio::test]
async fn an_expired_key_with_another_payload_is_reused() {
    let old = Old::new(1_000).await;
    for mode in MODES {
        let options = Options::default().mode(mode);
        let decided = old.bank.execute_with(deposit("a", 21), keyed("decided"), options).await;
        assert_eq!(reused(decided), old.decided, "{mode:?}");
        let handled = old.bank.execute_with(run(&[], 8), keyed("handled"), options).await;
        assert_eq!(reused(handled), old.handled, "{mode:?}");
        let batch = Batch::new().then_with(look("a"), keyed("decided"), options);
        assert_eq!(reused(old.bank.execute_all(batch).await), old.decided, "{mode:?}");
    }
    old.assert_nothing_ran().await;
}

#[tokio::test]
async fn the_outcome_of_an_expired_key_still_names_its_command() {
    let old = Old::new(1_000).await;
    let asked = [
        ("decided", old.decided, deposit("a", 20).name(), 1),
        ("handled", old.handled, run(&[], 7).name(), 0),
    ];
    for (name, command_id, command_name, streams) in asked {
        let record = old.bank.outcome(tenant(1), &key(name)).await.unwrap().unwrap();
        assert_eq!(record.command_id, command_id);
        assert_eq!(record.command_name.as_str(), command_name);
        assert_eq!(record.streams.len(), streams);
        assert_eq!(record.state, RecordState::Expired);
    }
}

/// The key is the tenant's own, and commands under other keys go on.
#[tokio::test]
async fn others_are_not_concerned_by_an_expired_key() {
    let old = Old::new(1_000).await;
    let elsewhere = || Meta::new(tenant(2)).key(key("handled"));
    assert!(old.bank.execute(run(&[], 7), elsewhere()).await.unwrap().is_executed());
    assert!(old.bank.execute(deposit("a", 20), keyed("fresh")).await.unwrap().is_executed());
    assert!(old.bank.execute(deposit("a", 20), meta()).await.unwrap().is_executed());
    assert_eq!(cents(&old.bank, "a").await, 60);
}
