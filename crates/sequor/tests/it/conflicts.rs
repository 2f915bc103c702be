//! Optimistic concurrency: versions, retries, `if_version`, the read set of a handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sequor::{Batch, Error, Options, Repo, Retry, StoreError, Version};
use tokio::task::JoinSet;

use crate::bank::{Account, Bank, Happened, Refused, bank, cents, deposit, keyed, meta, open};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    two_decisions_on_one_version_are_both_made_in_the_end,
    without_retries_a_conflict_reaches_the_caller,
    fifty_increments_by_ten_tasks_end_at_version_fifty,
    increments_through_two_services_are_all_there,
    if_version_that_matches_decides,
    if_version_that_does_not_match_is_a_conflict_at_once,
    if_version_that_does_not_match_fails_a_batch_at_once,
    a_replay_does_not_ask_for_the_version_again,
    if_version_on_a_handler_is_refused,
    a_guarded_read_is_checked_when_the_command_becomes_true,
    a_conflict_in_a_transaction_is_retried,
    a_conflict_of_an_issued_command_is_retried,
    a_busy_store_is_tried_again,
);

async fn two_decisions_on_one_version_are_both_made_in_the_end<H: Home>(store: Watched<H>) {
    let banks = [(), ()].map(|()| bank(&store).build().unwrap());
    open(&banks[0], &["a"]).await;
    store.watch.close_gate(Door::Commit);
    let mut running = JoinSet::new();
    for (bank, amount) in banks.clone().into_iter().zip([1, 2]) {
        running.spawn(async move { bank.execute(deposit("a", amount), meta()).await });
    }
    store.watch.at_gate(2).await;
    let before = store.watch.calls(Door::Commit);
    store.watch.open_gate();
    assert!(running.join_all().await.into_iter().all(|answer| answer.unwrap().is_executed()));
    assert_eq!(store.watch.calls(Door::Commit) - before, 1, "one of the two is tried again");
    assert_eq!(cents(&banks[0], "a").await, 3);
}

async fn without_retries_a_conflict_reaches_the_caller<H: Home>(store: Watched<H>) {
    let banks = [(), ()].map(|()| bank(&store).retry(Retry::OFF).build().unwrap());
    open(&banks[0], &["a"]).await;
    store.watch.close_gate(Door::Commit);
    let mut running = JoinSet::new();
    for (bank, amount) in banks.into_iter().zip([1, 2]) {
        running.spawn(async move { bank.execute(deposit("a", amount), meta()).await });
    }
    store.watch.at_gate(2).await;
    store.watch.open_gate();
    let answers = running.join_all().await;
    let lost: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    let [Error::Conflict { stream, expected, actual }] = lost.as_slice() else {
        panic!("{lost:?}")
    };
    assert_eq!(stream.to_string(), "account/a");
    assert_eq!((*expected, *actual), (Version::new(1), Version::new(2)));
}

/// Deposits one cent fifty times, from ten tasks over some services.
async fn fifty<H: Home>(services: &[Bank<H>]) {
    let mut running = JoinSet::new();
    for task in 0..10 {
        let bank = services[task % services.len()].clone();
        running.spawn(async move {
            for _ in 0..5 {
                bank.execute(deposit("a", 1), meta()).await.unwrap();
            }
        });
    }
    running.join_all().await;
    let receipt = services[0].execute(crate::bank::look("a"), meta()).await.unwrap();
    assert_eq!(receipt.streams[0].version, Version::new(51));
    assert_eq!(receipt.output.unwrap().cents, 50);
}

async fn fifty_increments_by_ten_tasks_end_at_version_fifty<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    fifty(&[bank]).await;
}

async fn increments_through_two_services_are_all_there<H: Home>(store: Watched<H>) {
    let patient = Retry { retries_max: 100, ..Retry::DEFAULT };
    let service = || bank(&store).retry(patient).build().unwrap();
    let services = [service(), service()];
    open(&services[0], &["a"]).await;
    fifty(&services).await;
}

fn seen(version: u64) -> Options {
    Options::default().if_version(Version::new(version))
}

async fn if_version_that_matches_decides<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let new = crate::bank::Ask::Open { account: "a".into() };
    bank.execute_with(new, meta(), seen(0)).await.unwrap();
    bank.execute_with(deposit("a", 5), meta(), seen(1)).await.unwrap();
    assert_eq!(cents(&bank, "a").await, 5);
}

async fn if_version_that_does_not_match_is_a_conflict_at_once<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    for wrong in [0, 2, 7] {
        let before = store.watch.calls(Door::History);
        let conflict = bank.execute_with(deposit("a", 5), meta(), seen(wrong)).await;
        let Err(Error::Conflict { expected, actual, .. }) = conflict else {
            panic!("{conflict:?}")
        };
        assert_eq!((expected, actual), (Version::new(wrong), Version::new(1)));
        assert_eq!(store.watch.calls(Door::History) - before, 1, "it is not tried again");
    }
    let keyed = bank.execute_with(deposit("a", 5), keyed("k"), seen(7)).await;
    assert!(matches!(keyed, Err(Error::Conflict { .. })), "{keyed:?}");
    assert_eq!(cents(&bank, "a").await, 0);
}

async fn if_version_that_does_not_match_fails_a_batch_at_once<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    let begun = store.watch.calls(Door::Begin);
    let batch =
        Batch::new().then(deposit("b", 5), meta()).then_with(deposit("a", 5), meta(), seen(7));
    let conflict = bank.execute_all(batch).await;
    assert!(matches!(conflict, Err(Error::Conflict { .. })), "{conflict:?}");
    assert_eq!(store.watch.calls(Door::Begin) - begun, 1, "it is not tried again");
    assert_eq!(cents(&bank, "b").await, 0);
}

async fn a_replay_does_not_ask_for_the_version_again<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute_with(deposit("a", 5), keyed("k"), seen(1)).await.unwrap();
    bank.execute(deposit("a", 5), meta()).await.unwrap();
    let again = bank.execute_with(deposit("a", 5), keyed("k"), seen(1)).await.unwrap();
    assert!(again.is_replayed());
}

async fn if_version_on_a_handler_is_refused<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, _| -> Handling<'_, Run> { Box::pin(async { Ok(7) }) });
    let bank = bank(&store).handler(handler).build().unwrap();
    let refused = bank.execute_with(run(&[], 1), meta(), seen(1)).await.unwrap_err();
    assert!(refused.to_string().contains("if_version"), "{refused}");
}

/// Withdraws from one account what two hold together. Reads both, writes one.
async fn withdraw_jointly<S: sequor::ports::Store>(
    run: &Run,
    repo: &mut Repo<S>,
    guard: bool,
) -> Result<i64, Error<Refused>> {
    let one = repo.load::<Account>(&run.accounts[0]).await?;
    let other = repo.load::<Account>(&run.accounts[1]).await?;
    let left = repo.get(one).cents + repo.get(other).cents - run.cents;
    if left < 0 {
        return Err(Error::Rejected(Refused::Overdrawn));
    }
    if guard {
        repo.guard(other);
    }
    repo.emit(one, &Happened::Posted { cents: -run.cents })?;
    Ok(left)
}

/// Stores that serialise their transactions know no write skew; what shows there is that the
/// guarded version is part of the commit, and the other is not.
async fn a_guarded_read_is_checked_when_the_command_becomes_true<H: Home>(store: Watched<H>) {
    for guard in [false, true] {
        let handler = doing(move |run: &Run, repo| -> Handling<'_, Run> {
            Box::pin(withdraw_jointly(run, repo, guard))
        });
        let bank = bank(&store).handler(handler).build().unwrap();
        let (one, other) = (format!("one {guard}"), format!("other {guard}"));
        open(&bank, &[&one, &other]).await;
        bank.execute(deposit(&other, 10), meta()).await.unwrap();
        let receipt = bank.execute(run(&[&one, &other], 10), meta()).await.unwrap();
        let streams: Vec<_> = receipt.streams.iter().map(|at| at.stream.id.as_str()).collect();
        assert_eq!(streams.contains(&other.as_str()), guard, "{streams:?}");
        let overdrawn = bank.execute(run(&[&other, &one], 1), meta()).await;
        assert!(matches!(overdrawn, Err(Error::Rejected(Refused::Overdrawn))), "{overdrawn:?}");
    }
}

async fn conflict<H: Home>(bank: &Bank<H>) -> StoreError {
    let looked = bank.execute(crate::bank::look("a"), meta()).await.unwrap();
    let stream = looked.streams[0].stream.clone();
    StoreError::Conflict { stream, expected: Version::new(1), actual: Version::new(2) }
}

/// Posts through the handler, or lets a deposit follow.
fn posting<H: Home>(store: &Watched<H>, issue: bool, runs: &Arc<AtomicUsize>) -> Bank<H> {
    let runs = Arc::clone(runs);
    let handler = doing(move |_: &Run, repo| -> Handling<'_, Run> {
        runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if issue {
                repo.issue(deposit("a", 5), None)?;
                return Ok(7);
            }
            let account = repo.load::<Account>("a").await?;
            repo.emit(account, &Happened::Posted { cents: 5 })?;
            Ok(7)
        })
    });
    bank(store).handler(handler).build().unwrap()
}

async fn a_conflict_in_a_transaction_is_retried<H: Home>(store: Watched<H>) {
    let runs = Arc::default();
    let bank = posting(&store, false, &runs);
    open(&bank, &["a"]).await;
    store.watch.fail(Door::Write, [conflict(&bank).await]);
    bank.execute(run(&[], 1), keyed("k")).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(cents(&bank, "a").await, 5);
    store.watch.fail(Door::Write, [conflict(&bank).await]);
    bank.execute_all(Batch::new().then(deposit("a", 5), meta())).await.unwrap();
    assert_eq!(cents(&bank, "a").await, 10);
}

async fn a_conflict_of_an_issued_command_is_retried<H: Home>(store: Watched<H>) {
    let runs = Arc::default();
    let bank = posting(&store, true, &runs);
    open(&bank, &["a"]).await;
    let conflict = conflict(&bank).await;
    store.watch.fail_after(Door::Write, 1, conflict);
    bank.execute(run(&[], 1), keyed("k")).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(cents(&bank, "a").await, 5);
}

async fn a_busy_store_is_tried_again<H: Home>(store: Watched<H>) {
    let runs = Arc::default();
    let bank = posting(&store, false, &runs);
    open(&bank, &["a"]).await;
    store.watch.fail(Door::Begin, [StoreError::Busy]);
    bank.execute(run(&[], 1), keyed("k")).await.unwrap();
    store.watch.fail(Door::Read, [StoreError::Busy]);
    bank.execute(run(&[], 1), keyed("read")).await.unwrap();
    store.watch.fail(Door::Commit, [StoreError::Busy]);
    bank.execute(deposit("a", 1), keyed("d")).await.unwrap();
    store.watch.fail(Door::Write, [StoreError::Busy]);
    bank.execute_all(Batch::new().then(deposit("a", 1), keyed("b"))).await.unwrap();
    assert_eq!(cents(&bank, "a").await, 12);
}
