//! An event on which a projection fails: its stream waits, in order, and the others go on.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sequor::ports::Transact;
use sequor::projections::{Followed, ParkedError, Runner, RunnerSettings, WaitError};
use sequor::{Projection, ProjectionError, Receipt, StoredEvent, async_trait};

use super::LONG;
use crate::bank::{Balance, Bank, Happened, bank, deposit, meta, open, tenant};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    a_stream_is_parked_and_the_others_go_on,
    a_parked_stream_is_taken_in_once_its_fault_is_mended,
    a_parked_stream_fails_again_and_stays,
    a_culprit_is_skipped_by_decision,
    a_projection_that_fails_everywhere_stands_still,
    a_failure_that_passes_parks_nothing,
    a_reason_that_no_column_holds_parks_all_the_same,
    a_stream_that_was_parked_under_other_settings_is_told,
    a_stream_that_another_projection_has_parked_is_left_alone,
);

/// Sums up what is deposited, and fails on what is 13 or 14, as long as it is told to.
struct Picky<H> {
    fails: Arc<AtomicBool>,
    failed: Arc<AtomicUsize>,
    home: PhantomData<fn() -> H>,
}

#[async_trait]
impl<H: Home> Projection<<H as Transact>::Connection> for Picky<H> {
    fn name(&self) -> &str {
        "picky"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut H::Connection,
    ) -> Result<(), ProjectionError> {
        let Happened::Posted { cents } = event.decode()? else { return Ok(()) };
        H::add(connection, event.stream.tenant, cents).await?;
        if (13..15).contains(&cents) && self.fails.load(Ordering::SeqCst) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            return Err(format!("{cents} is an unlucky number\0{}", "!".repeat(5_000)).into());
        }
        Ok(())
    }
}

/// A bank with accounts `a` and `b`, and a runner that fails on 13.
struct Trouble<H: Home> {
    store: Watched<H>,
    bank: Bank<H>,
    runner: Runner<Watched<H>>,
    fails: Arc<AtomicBool>,
    failed: Arc<AtomicUsize>,
}

impl<H: Home> Trouble<H> {
    async fn with(store: Watched<H>, settings: RunnerSettings) -> Self {
        let bank = bank(&store).build().unwrap();
        open(&bank, &["a", "b", "c"]).await;
        let (fails, failed) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let picky = Picky::<H> {
            fails: Arc::clone(&fails),
            failed: Arc::clone(&failed),
            home: PhantomData,
        };
        let builder = Runner::builder(store.clone()).projection(picky).settings(settings);
        Self { store, bank, runner: builder.start().unwrap(), fails, failed }
    }

    async fn new(store: Watched<H>) -> Self {
        Self::with(store, RunnerSettings::default().attempts_max(2)).await
    }

    async fn deposit(&self, account: &str, cents: i64) -> Receipt<Balance> {
        self.bank.execute(deposit(account, cents), meta()).await.unwrap()
    }

    fn picky(&self) -> &Followed<Watched<H>> {
        self.runner.followed("picky").unwrap()
    }

    async fn sum(&self) -> i64 {
        self.store.inner.sum(tenant(1)).await
    }
}

async fn a_stream_is_parked_and_the_others_go_on<H: Home>(store: Watched<H>) {
    let trouble = Trouble::new(store).await;
    trouble.deposit("a", 1).await;
    trouble.deposit("b", 2).await;
    let poison = trouble.deposit("a", 13).await;
    let behind = trouble.deposit("a", 4).await;
    let last = trouble.deposit("b", 5).await;
    trouble.picky().wait_for(&last, LONG).await.unwrap();
    assert_eq!(trouble.sum().await, 8);

    let parked = trouble.picky().parked(10).await.unwrap();
    assert_eq!(parked.len(), 1);
    assert_eq!((parked[0].stream.id.as_str(), parked[0].version.get()), ("a", 2));
    assert!(parked[0].parking.reason.contains("13 is an unlucky number"), "{parked:?}");
    assert_eq!(parked[0].parking.attempts, 2);
    for receipt in [poison, behind] {
        let error = trouble.picky().wait_for(&receipt, LONG).await.unwrap_err();
        assert!(matches!(&error, WaitError::Parked { stream, .. } if stream.id.as_str() == "a"));
        assert!(error.to_string().contains("did commit"), "{error}");
    }
}

async fn a_parked_stream_is_taken_in_once_its_fault_is_mended<H: Home>(store: Watched<H>) {
    let trouble = Trouble::new(store).await;
    trouble.deposit("a", 13).await;
    trouble.deposit("a", 4).await;
    let last = trouble.deposit("b", 5).await;
    trouble.picky().wait_for(&last, LONG).await.unwrap();
    assert_eq!(trouble.sum().await, 5);
    trouble.fails.store(false, Ordering::SeqCst);
    let parked = trouble.picky().parked(10).await.unwrap();
    trouble.picky().retry(&parked[0]).await.unwrap();
    assert_eq!(trouble.sum().await, 22);
    let again = trouble.picky().retry(&parked[0]).await.unwrap_err();
    assert!(matches!(again, ParkedError::NotParked { .. }), "{again}");
    let free = trouble.deposit("a", 8).await;
    trouble.picky().wait_for(&free, LONG).await.unwrap();
    assert_eq!(trouble.sum().await, 30, "it goes on with the others");
}

async fn a_parked_stream_fails_again_and_stays<H: Home>(store: Watched<H>) {
    let trouble = Trouble::new(store).await;
    trouble.deposit("a", 13).await;
    let last = trouble.deposit("b", 5).await;
    trouble.picky().wait_for(&last, LONG).await.unwrap();
    let parked = trouble.picky().parked(10).await.unwrap();
    let error = trouble.picky().retry(&parked[0]).await.unwrap_err();
    assert!(matches!(&error, ParkedError::StillParked { version, .. } if version.get() == 1));
    let parked = trouble.picky().parked(10).await.unwrap();
    assert_eq!(parked[0].parking.attempts, 3);
    assert_eq!(trouble.sum().await, 5);
}

async fn a_culprit_is_skipped_by_decision<H: Home>(store: Watched<H>) {
    let trouble = Trouble::new(store).await;
    trouble.deposit("a", 13).await;
    trouble.deposit("a", 4).await;
    trouble.deposit("a", 14).await;
    trouble.deposit("a", 16).await;
    let last = trouble.deposit("b", 5).await;
    trouble.picky().wait_for(&last, LONG).await.unwrap();
    let parked = trouble.picky().parked(10).await.unwrap();
    let error = trouble.picky().skip(&parked[0]).await.unwrap_err();
    assert!(matches!(&error, ParkedError::StillParked { version, .. } if version.get() == 3));
    assert_eq!(trouble.sum().await, 9, "all between the two is taken in");
    let twice = trouble.picky().skip(&parked[0]).await.unwrap_err();
    assert!(matches!(twice, ParkedError::StillParked { .. }), "only what was seen is skipped");
    let parked = trouble.picky().parked(10).await.unwrap();
    trouble.picky().skip(&parked[0]).await.unwrap();
    assert_eq!(trouble.sum().await, 25);
    assert!(trouble.picky().parked(10).await.unwrap().is_empty());
}

async fn a_projection_that_fails_everywhere_stands_still<H: Home>(store: Watched<H>) {
    let settings = RunnerSettings::default().attempts_max(1).parked_max(2);
    let trouble = Trouble::with(store, settings).await;
    for account in ["a", "b"] {
        let receipt = trouble.deposit(account, 13).await;
        let error = trouble.picky().wait_for(&receipt, LONG).await.unwrap_err();
        assert!(matches!(error, WaitError::Parked { .. }), "{error}");
    }
    let third = trouble.deposit("c", 13).await;
    let error = trouble.picky().wait_for(&third, Duration::from_millis(300)).await.unwrap_err();
    assert!(error.to_string().contains("2 streams are parked already"), "{error}");
    trouble.fails.store(false, Ordering::SeqCst);
    trouble.picky().wait_for(&third, LONG).await.unwrap();
    assert_eq!(trouble.sum().await, 13);
}

async fn a_failure_that_passes_parks_nothing<H: Home>(store: Watched<H>) {
    let settings = RunnerSettings::default().attempts_max(100);
    let trouble = Trouble::with(store, settings).await;
    let receipt = trouble.deposit("a", 13).await;
    while trouble.failed.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    trouble.fails.store(false, Ordering::SeqCst);
    trouble.picky().wait_for(&receipt, LONG).await.unwrap();
    assert_eq!(trouble.sum().await, 13);
    assert!(trouble.picky().parked(10).await.unwrap().is_empty());
}

async fn a_reason_that_no_column_holds_parks_all_the_same<H: Home>(store: Watched<H>) {
    let trouble = Trouble::new(store).await;
    let receipt = trouble.deposit("a", 13).await;
    let error = trouble.picky().wait_for(&receipt, LONG).await.unwrap_err();
    let WaitError::Parked { reason, .. } = error else { panic!("{error}") };
    assert!(reason.contains("unlucky number\u{fffd}!"), "{reason}");
    assert_eq!(reason.chars().count(), 1_000);
}

async fn a_stream_that_was_parked_under_other_settings_is_told<H: Home>(store: Watched<H>) {
    let trouble = Trouble::new(store.clone()).await;
    let receipts = [trouble.deposit("a", 13).await, trouble.deposit("b", 13).await];
    for receipt in &receipts {
        trouble.picky().wait_for(receipt, LONG).await.unwrap_err();
    }
    trouble.runner.stop().await;
    let picky = Picky::<H> {
        fails: Arc::clone(&trouble.fails),
        failed: Arc::clone(&trouble.failed),
        home: PhantomData,
    };
    let settings = RunnerSettings::default().parked_max(0);
    let builder = Runner::builder(store).projection(picky).settings(settings);
    let runner = builder.start().unwrap();
    for receipt in &receipts {
        let waited = runner.followed("picky").unwrap().wait_for(receipt, LONG).await;
        assert!(matches!(waited, Err(WaitError::Parked { .. })), "{waited:?}");
    }
}

async fn a_stream_that_another_projection_has_parked_is_left_alone<H: Home>(store: Watched<H>) {
    let trouble = Trouble::new(store.clone()).await;
    let receipt = trouble.deposit("a", 13).await;
    trouble.picky().wait_for(&receipt, LONG).await.unwrap_err();
    let parked = trouble.picky().parked(10).await.unwrap().remove(0);
    let others = super::run(&store, super::Sums::<H>::new());
    for decided in [
        others.followed("sums").unwrap().retry(&parked).await,
        others.followed("sums").unwrap().skip(&parked).await,
    ] {
        assert!(matches!(decided, Err(ParkedError::NotParked { .. })), "{decided:?}");
    }
    assert_eq!(trouble.picky().parked(10).await.unwrap(), [parked]);
}
