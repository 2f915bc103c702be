//! Projections behind the commands: each event once, in order, whoever is killed; and waited for.

mod killed;
mod parking;

use std::marker::PhantomData;
use std::time::Duration;

use sequor::ports::{Store, Transact};
use sequor::projections::{Followed, Runner, RunnerSettings, StartError, WaitError};
use sequor::{Epoch, Projection, ProjectionError, Receipt, StoredEvent, Wants, async_trait};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::bank::{Account, Happened, bank, deposit, keyed, look, meta, open, tenant};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    a_receipt_is_waited_for_and_then_read,
    a_replayed_receipt_waits_for_what_happened_then,
    a_receipt_without_events_is_not_waited_for,
    a_wait_that_takes_too_long_says_that_the_command_did_commit,
    a_receipt_of_another_life_is_not_waited_for,
    a_projection_is_shown_what_it_wants,
    a_runner_takes_over_where_another_has_stopped,
    a_runner_waits_for_what_another_one_runs,
    a_runner_with_a_mistake_does_not_start,
    runners_with_different_projections_leave_nothing_out,
    who_waits_outlives_the_runner,
);

/// Far longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Sums up what is deposited, for each tenant.
pub(crate) struct Sums<H>(PhantomData<fn() -> H>);

impl<H> Sums<H> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

#[async_trait]
impl<H: Home> Projection<<H as Transact>::Connection> for Sums<H> {
    fn name(&self) -> &str {
        "sums"
    }

    fn wants(&self) -> Wants {
        Wants::events_of::<Account>()
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut H::Connection,
    ) -> Result<(), ProjectionError> {
        if let Happened::Posted { cents } = event.decode()? {
            H::add(connection, event.stream.tenant, cents).await?;
        }
        Ok(())
    }
}

/// A runner of one projection.
pub(crate) fn run<H: Home>(
    store: &Watched<H>,
    projection: impl Projection<<H as Transact>::Connection>,
) -> Runner<Watched<H>> {
    let settings = RunnerSettings::default().lease_ttl(Duration::from_secs(1)).batch_events_max(50);
    Runner::builder(store.clone()).projection(projection).settings(settings).start().unwrap()
}

/// The one projection of a runner.
pub(crate) fn followed<H: Home>(runner: &Runner<Watched<H>>, name: &str) -> Followed<Watched<H>> {
    runner.followed(name).unwrap().clone()
}

async fn a_receipt_is_waited_for_and_then_read<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let runner = run(&store, Sums::<H>::new());
    let sums = followed(&runner, "sums");
    open(&bank, &["a", "b"]).await;
    for (round, account) in (1..).zip(["a", "b", "a", "a"]) {
        let receipt = bank.execute(deposit(account, 20), meta()).await.unwrap();
        let sum = async || Ok::<_, ()>(store.inner.sum(tenant(1)).await);
        assert_eq!(sums.query_after(&receipt, LONG, sum).await.unwrap(), 20 * round);
    }
    runner.stop().await;
    assert_eq!(store.inner.sum(tenant(2)).await, 0);
}

async fn a_replayed_receipt_waits_for_what_happened_then<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    let replayed = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    assert!(replayed.is_replayed());
    let runner = run(&store, Sums::<H>::new());
    followed(&runner, "sums").wait_for(&replayed, LONG).await.unwrap();
    assert_eq!(store.inner.sum(tenant(1)).await, 20);
    runner.stop().await;
}

async fn a_receipt_without_events_is_not_waited_for<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let receipt = bank.execute(look("a"), meta()).await.unwrap();
    let runner = run(&store, Stuck(Semaphore::new(0)));
    followed(&runner, "stuck").wait_for(&receipt, Duration::ZERO).await.unwrap();
}

/// Comes to no end.
struct Stuck(Semaphore);

#[async_trait]
impl<C: ?Sized + Send> Projection<C> for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    async fn project(&self, _: &StoredEvent, _: &mut C) -> Result<(), ProjectionError> {
        let _permit = self.0.acquire().await?;
        Ok(())
    }
}

async fn a_wait_that_takes_too_long_says_that_the_command_did_commit<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let receipt =
        bank.execute(crate::bank::Ask::Open { account: "a".into() }, meta()).await.unwrap();
    let runner = run(&store, Stuck(Semaphore::new(0)));
    let stuck = followed(&runner, "stuck");
    let error = stuck.wait_for(&receipt, Duration::from_millis(30)).await.unwrap_err();
    assert!(
        matches!(error, WaitError::Timeout { command_id, .. } if command_id == receipt.command_id)
    );
    assert!(error.to_string().contains("did commit"), "{error}");
}

async fn a_receipt_of_another_life_is_not_waited_for<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let runner = run(&store, Sums::<H>::new());
    let receipt = bank.execute(deposit("a", 1), meta()).await.unwrap();
    assert_eq!(receipt.epoch, store.epoch());
    let older = Receipt { epoch: Epoch(Uuid::from_u128(1)), ..receipt };
    let error = followed(&runner, "sums").wait_for(&older, LONG).await.unwrap_err();
    assert!(matches!(error, WaitError::OtherEpoch { .. }), "{error}");
}

/// Fails on everything, and wants nothing of it.
struct Elsewhere;

#[derive(Clone, Default)]
struct Other;

impl sequor::Aggregate for Other {
    const NAME: &str = "other";
    type Event = Happened;

    fn apply(&mut self, _: &Happened) {}
}

#[async_trait]
impl<C: ?Sized + Send> Projection<C> for Elsewhere {
    fn name(&self) -> &str {
        "elsewhere"
    }

    fn wants(&self) -> Wants {
        Wants::events_of::<Other>()
    }

    async fn project(&self, _: &StoredEvent, _: &mut C) -> Result<(), ProjectionError> {
        Err("it was shown what it does not want".into())
    }
}

async fn a_projection_is_shown_what_it_wants<H: Home>(store: Watched<H>) {
    let inline = bank(&store).projection(Elsewhere).build().unwrap();
    open(&inline, &["a"]).await;
    let runner = run(&store, Elsewhere);
    let receipt = inline.execute(deposit("a", 1), meta()).await.unwrap();
    followed(&runner, "elsewhere").wait_for(&receipt, LONG).await.unwrap();
    runner.stop().await;
}

async fn a_runner_takes_over_where_another_has_stopped<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    for round in 1..=3 {
        let runner = run(&store, Sums::<H>::new());
        let receipt = bank.execute(deposit("a", 5), meta()).await.unwrap();
        followed(&runner, "sums").wait_for(&receipt, LONG).await.unwrap();
        assert_eq!(store.inner.sum(tenant(1)).await, 5 * round);
        runner.stop().await;
        // What it has behind it is known to those that come after it.
        let next = run(&store, Sums::<H>::new());
        followed(&next, "sums").wait_for(&receipt, LONG).await.unwrap();
        next.stop().await;
    }
}

async fn a_runner_waits_for_what_another_one_runs<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let first = run(&store, Sums::<H>::new());
    let receipt = bank.execute(deposit("a", 5), meta()).await.unwrap();
    followed(&first, "sums").wait_for(&receipt, LONG).await.unwrap();
    // It finds everything taken, or shares the work.
    let second = run(&store, Sums::<H>::new());
    for round in 2..=10 {
        let receipt = bank.execute(deposit("a", 5), meta()).await.unwrap();
        followed(&second, "sums").wait_for(&receipt, LONG).await.unwrap();
        assert_eq!(store.inner.sum(tenant(1)).await, 5 * round);
    }
    drop(first);
    let receipt = bank.execute(deposit("a", 5), meta()).await.unwrap();
    followed(&second, "sums").wait_for(&receipt, LONG).await.unwrap();
    assert_eq!(store.inner.sum(tenant(1)).await, 55, "taken over from one that was killed");
}

async fn a_runner_with_a_mistake_does_not_start<H: Home>(store: Watched<H>) {
    let builder = || Runner::builder(store.clone());
    let twice = builder().projection(Elsewhere).projection(Elsewhere).start().unwrap_err();
    assert!(matches!(twice, StartError::Twice { .. }), "{twice}");
    let never = RunnerSettings::default().lease_ttl(Duration::ZERO);
    let never = builder().projection(Elsewhere).settings(never).start().unwrap_err();
    assert_eq!(never.to_string(), "`lease_ttl` must be 1 s to 10 min");
}

/// The first sees nothing of the second, which is no rival of it.
async fn runners_with_different_projections_leave_nothing_out<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let first = run(&store, Sums::<H>::new());
    let second = run(&store, Elsewhere);
    for number in 1..=20 {
        let meta = sequor::Meta::new(tenant(number));
        let open = crate::bank::Ask::Open { account: "a".to_owned() };
        let receipt = bank.execute(open, meta).await.unwrap();
        followed(&first, "sums").wait_for(&receipt, LONG).await.unwrap();
        followed(&second, "elsewhere").wait_for(&receipt, LONG).await.unwrap();
    }
}

async fn who_waits_outlives_the_runner<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let first = run(&store, Sums::<H>::new());
    let sums = followed(&first, "sums");
    let receipt = bank.execute(deposit("a", 5), meta()).await.unwrap();
    sums.wait_for(&receipt, LONG).await.unwrap();
    drop(first);
    let second = run(&store, Sums::<H>::new());
    let receipt = bank.execute(deposit("a", 5), meta()).await.unwrap();
    followed(&second, "sums").wait_for(&receipt, LONG).await.unwrap();
    sums.wait_for(&receipt, LONG).await.unwrap();
}
