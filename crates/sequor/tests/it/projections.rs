//! Inline projections: their rows share the command's transaction.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sequor::async_trait;
use sequor::ports::Transact;
use sequor::{Batch, Error, Projection, ProjectionError, StoredEvent};

use crate::bank::{Happened, bank, cents, deposit, key, keyed, log_of, meta, open, tenant};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    rows_are_there_as_soon_as_the_command_is,
    a_replay_does_not_project_again,
    a_failing_projection_fails_the_command_and_leaves_nothing,
    projections_see_what_handlers_and_batches_do,
);

/// Sums up what is deposited, for each tenant.
struct Sums<H> {
    fails: Arc<AtomicBool>,
    home: PhantomData<fn() -> H>,
}

impl<H> Sums<H> {
    fn new(fails: &Arc<AtomicBool>) -> Self {
        Self { fails: Arc::clone(fails), home: PhantomData }
    }
}

#[async_trait]
impl<H: Home> Projection<<H as Transact>::Connection> for Sums<H> {
    fn name(&self) -> &str {
        "sums"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut H::Connection,
    ) -> Result<(), ProjectionError> {
        if let Ok(Happened::Posted { cents }) = event.decode() {
            H::add(connection, event.stream.tenant, cents).await?;
        }
        if self.fails.load(Ordering::SeqCst) {
            return Err("as told".into());
        }
        Ok(())
    }
}

async fn rows_are_there_as_soon_as_the_command_is<H: Home>(store: Watched<H>) {
    let bank = bank(&store).projection(Sums::<H>::new(&Arc::default())).build().unwrap();
    open(&bank, &["a", "b"]).await;
    for (round, account) in (1..).zip(["a", "b", "a"]) {
        bank.execute(deposit(account, 20), meta()).await.unwrap();
        assert_eq!(store.inner.sum(tenant(1)).await, 20 * round);
    }
    assert_eq!(store.inner.sum(tenant(2)).await, 0);
}

async fn a_replay_does_not_project_again<H: Home>(store: Watched<H>) {
    let bank = bank(&store).projection(Sums::<H>::new(&Arc::default())).build().unwrap();
    open(&bank, &["a"]).await;
    sequor_testkit::assert_once(&bank, deposit("a", 20), keyed("k"), 10).await;
    assert_eq!(store.inner.sum(tenant(1)).await, 20);
}

async fn a_failing_projection_fails_the_command_and_leaves_nothing<H: Home>(store: Watched<H>) {
    let fails = Arc::default();
    let bank = bank(&store).projection(Sums::<H>::new(&fails)).build().unwrap();
    open(&bank, &["a"]).await;
    fails.store(true, Ordering::SeqCst);
    let failed = bank.execute(deposit("a", 20), keyed("k")).await.unwrap_err();
    assert!(matches!(&failed, Error::Corrupt { what } if what.contains("sums")), "{failed:?}");
    let batch = Batch::new().then(deposit("a", 20), keyed("k"));
    bank.execute_all(batch).await.unwrap_err();
    assert_eq!(store.inner.sum(tenant(1)).await, 0);
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
    let log = log_of(&store, tenant(1)).await;
    assert_eq!(log.len(), 1);
    fails.store(false, Ordering::SeqCst);
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().is_executed());
    assert_eq!((store.inner.sum(tenant(1)).await, cents(&bank, "a").await), (20, 20));
}

async fn projections_see_what_handlers_and_batches_do<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.issue(deposit("a", 5), None)?;
            Ok(7)
        })
    });
    let builder = bank(&store).handler(handler).projection(Sums::<H>::new(&Arc::default()));
    let bank = builder.build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(run(&[], 0), meta()).await.unwrap();
    bank.execute_all(Batch::new().then(deposit("a", 1), meta()).then(deposit("a", 2), meta()))
        .await
        .unwrap();
    assert_eq!(store.inner.sum(tenant(1)).await, 8);
}
