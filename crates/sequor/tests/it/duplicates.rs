//! Duplicates at the same time: one runs, the others get what a later retry would get.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use sequor::memory::MemoryStore;
use sequor::{Error, Idempotency, Receipt, StoreError};
use sequor_testkit::assert_once;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::bank::{Balance, Bank, Refused, bank, cents, deposit, keyed, open, withdraw};
use crate::doing::{Handling, Run, doing, run};
use crate::home::{Fresh, Home};
use crate::watched::{Door, Watched};

on_every_store!(
    fifty_duplicates_at_once_take_effect_once,
    fifty_duplicates_of_a_handler_take_effect_once,
    thirty_two_duplicates_on_a_slow_store_share_one_trip,
    when_the_leader_fails_one_follower_runs,
    when_the_leader_panics_one_follower_runs,
    when_the_leader_is_dropped_one_follower_runs,
    followers_of_a_rejected_leader_are_rejected_each_on_its_own,
    two_requests_under_one_key_at_once_run_one_of_them,
    a_duplicate_does_not_wait_where_waiting_is_switched_off,
    flights_of_other_keys_do_not_wait,
);

async fn fifty_duplicates_at_once_take_effect_once<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let receipt = assert_once(&bank, deposit("a", 20), keyed("k"), 50).await;
    assert_eq!(receipt.output.unwrap().cents, 20);
    assert_eq!(cents(&bank, "a").await, 20);
}

async fn fifty_duplicates_of_a_handler_take_effect_once<H: Home>(store: Watched<H>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&ran);
    let handler = doing(move |_: &Run, _| -> Handling<'_, Run> {
        counts.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(7) })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    assert_once(&bank, run(&[], 1), keyed("k"), 50).await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// Starts duplicates that all want the same deposit. When it returns, the first of them stands at
/// the closed gate, and the others wait for it.
fn board<H: Home>(
    bank: &Bank<H>,
    count: usize,
) -> JoinSet<Result<Receipt<Balance>, Error<Refused>>> {
    let mut running = JoinSet::new();
    for _ in 0..count {
        let bank = bank.clone();
        let duplicate = async move { bank.execute(deposit("a", 20), keyed("k")).await };
        let mut duplicate = Box::pin(duplicate);
        assert!(duplicate.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        running.spawn(duplicate);
    }
    running
}

async fn thirty_two_duplicates_on_a_slow_store_share_one_trip<H: Home>(store: Watched<H>) {
    let bank = bank(&store).aggregates_cached_max(0).build().unwrap();
    open(&bank, &["a"]).await;
    let before = store.watch.calls(Door::History);
    store.watch.close_gate(Door::History);
    let running = board(&bank, 32);
    store.watch.open_gate();
    let receipts = running.join_all().await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(receipts.iter().filter(|one| one.is_executed()).count(), 1);
    assert!(receipts.iter().all(|one| one.command_id == receipts[0].command_id));
    assert!(receipts.iter().all(|one| one.position == receipts[0].position));
    assert_eq!(cents(&bank, "a").await, 20);
    let trips = store.watch.calls(Door::History) - before;
    assert_eq!(trips, 2, "one for the duplicates, one for the look");
}

async fn when_the_leader_fails_one_follower_runs<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::Commit);
    let running = board(&bank, 20);
    store.watch.fail(Door::Commit, [StoreError::unavailable("away")]);
    store.watch.open_gate();
    let answers = running.join_all().await;
    let failed = answers.iter().filter(|one| matches!(one, Err(Error::Unavailable { .. })));
    assert_eq!(failed.count(), 1);
    let executed = answers.iter().flatten().filter(|receipt| receipt.is_executed());
    assert_eq!(executed.count(), 1);
    assert_eq!(answers.iter().flatten().filter(|receipt| receipt.is_replayed()).count(), 18);
    assert_eq!(cents(&bank, "a").await, 20);
}

/// A handler that tells when it is in, waits to be let go, and panics the first time.
struct Stage {
    entered: Semaphore,
    go: Notify,
    runs: AtomicUsize,
}

impl Stage {
    fn new() -> Arc<Self> {
        Arc::new(Self { entered: Semaphore::new(0), go: Notify::new(), runs: AtomicUsize::new(0) })
    }

    /// The number of this run, once it may go on.
    async fn enter(&self) -> usize {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        self.entered.add_permits(1);
        self.go.notified().await;
        run
    }

    async fn entered(&self) {
        self.entered.acquire().await.unwrap().forget();
    }
}

fn staged<H: Home>(store: &Watched<H>, stage: &Arc<Stage>, panics: usize) -> Bank<H> {
    let stage = Arc::clone(stage);
    let handler = doing(move |_: &Run, _| -> Handling<'_, Run> {
        let stage = Arc::clone(&stage);
        Box::pin(async move {
            let run = stage.enter().await;
            assert!(run > panics, "the handler panics in run {run}, as told");
            Ok(7)
        })
    });
    bank(store).handler(handler).build().unwrap()
}

async fn when_the_leader_panics_one_follower_runs<H: Home>(store: Watched<H>) {
    let stage = Stage::new();
    let bank = staged(&store, &stage, 1);
    let mut running = JoinSet::new();
    for _ in 0..10 {
        let bank = bank.clone();
        running.spawn(async move { bank.execute(run(&[], 1), keyed("k")).await });
    }
    for _ in 0..2 {
        stage.entered().await;
        stage.go.notify_one();
    }
    let (mut panicked, mut executed, mut replayed) = (0, 0, 0);
    while let Some(ended) = running.join_next().await {
        match ended {
            Err(error) => panicked += usize::from(error.is_panic()),
            Ok(answer) if answer.as_ref().unwrap().is_executed() => executed += 1,
            Ok(_) => replayed += 1,
        }
    }
    assert_eq!((panicked, executed, replayed), (1, 1, 8));
    assert_eq!(stage.runs.load(Ordering::SeqCst), 2);
}

async fn when_the_leader_is_dropped_one_follower_runs<H: Home>(store: Watched<H>) {
    let stage = Stage::new();
    let bank = staged(&store, &stage, 0);
    let (leads, follows) = (bank.clone(), bank.clone());
    let leader = tokio::spawn(async move { leads.execute(run(&[], 1), keyed("k")).await });
    stage.entered().await;
    let mut followers = JoinSet::new();
    for _ in 0..9 {
        let bank = follows.clone();
        followers.spawn(async move { bank.execute(run(&[], 1), keyed("k")).await });
    }
    leader.abort();
    stage.entered().await;
    stage.go.notify_one();
    let receipts: Vec<_> = followers.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(receipts.iter().filter(|receipt| receipt.is_executed()).count(), 1);
    assert_eq!(receipts.iter().filter(|receipt| receipt.is_replayed()).count(), 8);
    assert_eq!(stage.runs.load(Ordering::SeqCst), 2);
}

async fn followers_of_a_rejected_leader_are_rejected_each_on_its_own<H: Home>(store: Watched<H>) {
    let bank = bank(&store).aggregates_cached_max(0).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::History);
    let mut running = JoinSet::new();
    for _ in 0..10 {
        let bank = bank.clone();
        running.spawn(async move { bank.execute(withdraw("a", 1), keyed("k")).await });
    }
    store.watch.at_gate(1).await;
    store.watch.open_gate();
    for answer in running.join_all().await {
        assert!(matches!(answer, Err(Error::Rejected(Refused::Overdrawn))), "{answer:?}");
    }
    bank.execute(deposit("a", 1), keyed("k")).await.unwrap();
}

async fn two_requests_under_one_key_at_once_run_one_of_them<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::Answer);
    let mut running = JoinSet::new();
    for request in 0..10 {
        let bank = bank.clone();
        let amount = 20 + request % 2;
        running.spawn(async move { bank.execute(deposit("a", amount), keyed("k")).await });
    }
    store.watch.at_gate(2).await;
    store.watch.open_gate();
    let answers = running.join_all().await;
    assert_eq!(answers.iter().flatten().filter(|receipt| receipt.is_executed()).count(), 1);
    assert_eq!(answers.iter().flatten().filter(|receipt| receipt.is_replayed()).count(), 4);
    let reused = answers.iter().filter(|one| matches!(one, Err(Error::KeyReused { .. })));
    assert_eq!(reused.count(), 5);
    assert!([20, 21].contains(&cents(&bank, "a").await));
}

async fn a_duplicate_does_not_wait_where_waiting_is_switched_off<H: Home>(store: Watched<H>) {
    let settings = Idempotency { wait_max: Duration::ZERO, ..Idempotency::default() };
    let bank = bank(&store).idempotency(settings).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::Commit);
    let running = board(&bank, 1);
    let duplicate = bank.execute(deposit("a", 20), keyed("k")).await;
    assert!(matches!(duplicate, Err(Error::InProgress { .. })), "{duplicate:?}");
    store.watch.open_gate();
    assert!(running.join_all().await.remove(0).unwrap().is_executed());
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().is_replayed());
}

async fn flights_of_other_keys_do_not_wait<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    store.watch.close_gate(Door::Commit);
    let mut running = JoinSet::new();
    for (account, name) in [("a", "k"), ("b", "K")] {
        let bank = bank.clone();
        running.spawn(async move { bank.execute(deposit(account, 20), keyed(name)).await });
    }
    store.watch.at_gate(2).await;
    store.watch.open_gate();
    assert!(running.join_all().await.into_iter().all(|answer| answer.unwrap().is_executed()));
}

/// However many leaders fail before it, a duplicate waits no longer than `wait` in all.
#[tokio::test(start_paused = true)]
async fn waiting_is_bounded_in_all() {
    let store = MemoryStore::fresh().await;
    let stage = Stage::new();
    let bank = staged(&store, &stage, usize::MAX);
    let begun = tokio::time::Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..4 {
        let bank = bank.clone();
        running.spawn(async move { bank.execute(run(&[], 1), keyed("k")).await });
    }
    stage.entered().await;
    tokio::time::advance(Duration::from_secs(3)).await;
    stage.go.notify_one();
    stage.entered().await;
    assert!(running.join_next().await.unwrap().unwrap_err().is_panic());
    for _ in 0..2 {
        let answer = running.join_next().await.unwrap().unwrap();
        assert!(matches!(answer, Err(Error::InProgress { .. })), "{answer:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}
