//! One hot aggregate: its commands are decided in order on what those before them will have made,
//! while the commits are under way.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use sequor::{Batch, Error, Meta, Mode, Options, Receipt, Version};
use tokio::task::JoinSet;

use crate::bank::{
    Ask, Balance, Bank, Happened, Refused, bank, cents, deposit, keyed, look, meta, open, withdraw,
};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    one_hot_aggregate_is_served_in_order,
    the_next_one_is_decided_before_the_first_is_answered,
    a_refusal_waits_for_what_it_was_decided_on,
    a_version_that_was_named_is_compared_with_what_is_stored,
    a_transaction_in_between_is_seen_by_those_who_come_after,
    a_caller_that_goes_away_holds_up_nobody,
);

pub(crate) type Answer = Result<Receipt<Balance>, Error<Refused>>;

pub(crate) const CALLERS: u64 = 32;

/// Executes commands at once, each in a task of its own that has come as far as its first wait
/// before the next one starts.
pub(crate) async fn in_order<H: Home>(bank: &Bank<H>, asks: Vec<(Ask, Meta)>) -> JoinSet<Answer> {
    let mut running = JoinSet::new();
    for (ask, meta) in asks {
        let bank = bank.clone();
        let (started, is_started) = tokio::sync::oneshot::channel();
        running.spawn(async move {
            let options = Options::default().mode(Mode::Output);
            let mut executing = pin!(bank.execute_with(ask, meta, options));
            let first = poll_fn(|context| Poll::Ready(executing.as_mut().poll(context))).await;
            started.send(()).unwrap();
            match first {
                Poll::Ready(answer) => answer,
                Poll::Pending => executing.await,
            }
        });
        is_started.await.unwrap();
    }
    running
}

async fn one_hot_aggregate_is_served_in_order<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let (commits, histories) = (store.watch.calls(Door::Commit), store.watch.calls(Door::History));
    let mut running = JoinSet::new();
    for caller in 0..CALLERS {
        let bank = bank.clone();
        running.spawn(async move {
            let mut versions = Vec::new();
            for n in 0..10 {
                let meta = keyed(&format!("{caller}-{n}"));
                let receipt = bank.execute(deposit("a", 1), meta).await.unwrap();
                let version = receipt.streams[0].version;
                let balance = receipt.output.unwrap().cents.unsigned_abs();
                assert_eq!(balance + 1, version.get(), "decided on what those before have made");
                versions.push(version);
            }
            versions
        });
    }
    let mut versions: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    versions.sort();
    assert!(versions.into_iter().eq((2..CALLERS * 10 + 2).map(Version::new)), "without holes");
    assert_eq!(store.watch.calls(Door::Commit) - commits, 320, "nobody was tried again");
    assert_eq!(store.watch.calls(Door::History) - histories, 0, "nobody has loaded it");
}

async fn the_next_one_is_decided_before_the_first_is_answered<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::Answer);
    let asks = (1..=5).map(|n| (deposit("a", n), keyed(&n.to_string()))).collect();
    let running = in_order(&bank, asks).await;
    store.watch.at_gate(5).await;
    store.watch.open_gate();
    let mut balances: Vec<_> = executed(running).await.into_iter().map(|one| one.cents).collect();
    balances.sort_unstable();
    assert_eq!(balances, [1, 3, 6, 10, 15]);
}

pub(crate) async fn executed(running: JoinSet<Answer>) -> Vec<Balance> {
    let receipts = running.join_all().await.into_iter().map(Result::unwrap);
    receipts.map(|receipt| receipt.output.unwrap()).collect()
}

async fn a_refusal_waits_for_what_it_was_decided_on<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 10), meta()).await.unwrap();
    store.watch.close_gate(Door::Answer);
    let asks = vec![(withdraw("a", 10), keyed("1")), (withdraw("a", 1), keyed("2"))];
    let mut running = in_order(&bank, asks).await;
    store.watch.at_gate(1).await;
    assert!(running.try_join_next().is_none(), "no refusal on what is not true yet");
    store.watch.open_gate();
    let answers = running.join_all().await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(matches!(refused[..], [Error::Rejected(Refused::Overdrawn)]), "{refused:?}");
}

async fn a_version_that_was_named_is_compared_with_what_is_stored<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::Answer);
    let mut running = in_order(&bank, vec![(deposit("a", 1), keyed("1"))]).await;
    store.watch.at_gate(1).await;
    for (version, key) in [(1, "stale"), (2, "right")] {
        let bank = bank.clone();
        let options = Options::default().if_version(Version::new(version));
        running.spawn(async move { bank.execute_with(deposit("a", 1), keyed(key), options).await });
    }
    store.watch.at_gate(2).await;
    store.watch.open_gate();
    let answers = running.join_all().await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    let [Error::Conflict { expected, .. }] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(*expected, Version::new(1));
    assert_eq!(cents(&bank, "a").await, 2);
}

/// Handlers and batches see what is stored; whoever was decided on something else is decided again.
async fn a_transaction_in_between_is_seen_by_those_who_come_after<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<crate::bank::Account>("a").await?;
            let before = repo.get(account).cents;
            repo.emit(account, &Happened::Posted { cents: run.cents })?;
            repo.issue(deposit("a", 1), None)?;
            Ok(before)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    open(&bank, &["a"]).await;
    let mut running = JoinSet::new();
    for caller in 0..CALLERS {
        let bank = bank.clone();
        running.spawn(async move {
            for n in 0..4 {
                let key = keyed(&format!("{caller}-{n}"));
                match (caller + n) % 8 {
                    0 => drop(bank.execute(run(&[], 1), key).await.unwrap()),
                    1 => {
                        let twice = Batch::new().then(deposit("a", 1), key);
                        let twice = twice.then(deposit("a", 1), meta());
                        bank.execute_all(twice).await.unwrap();
                    }
                    _ => drop(bank.execute(deposit("a", 1), key).await.unwrap()),
                }
            }
        });
    }
    running.join_all().await;
    let looked = bank.execute(look("a"), meta()).await.unwrap();
    // Of 128 commands, 16 are handlers and 16 batches: those post twice.
    assert_eq!(looked.output.unwrap().cents, 160);
    assert_eq!(looked.streams[0].version, Version::new(161));
}

async fn a_caller_that_goes_away_holds_up_nobody<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::Answer);
    tokio::select! {
        () = store.watch.at_gate(1) => {}
        answer = bank.execute(deposit("a", 1), keyed("gone")) => panic!("{answer:?}"),
    }
    let running = in_order(&bank, vec![(deposit("a", 2), keyed("next"))]).await;
    store.watch.open_gate();
    let balances = executed(running).await;
    assert_eq!(balances[0].cents, 3, "decided on the commit that nobody waits for");
    let histories = store.watch.calls(Door::History);
    bank.execute(deposit("a", 4), keyed("last")).await.unwrap();
    assert_eq!(store.watch.calls(Door::History), histories, "and its state was remembered");
    assert_eq!(cents(&bank, "a").await, 7);
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_batch_carries_many_commands_of_one_aggregate() {
    use crate::home::Fresh;

    let store = sequor::sqlite::SqliteStore::fresh().await;
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let before = store.inner.stats();
    let mut running = JoinSet::new();
    for caller in 0..CALLERS {
        let bank = bank.clone();
        running.spawn(async move {
            for n in 0..20 {
                bank.execute(deposit("a", 1), keyed(&format!("{caller}-{n}"))).await.unwrap();
            }
        });
    }
    running.join_all().await;
    let after = store.inner.stats();
    let (commits, batches) = (after.commits - before.commits, after.batches - before.batches);
    assert_eq!(commits, CALLERS * 20);
    assert!(batches * 4 < commits, "{batches} batches for {commits} commits");
}
