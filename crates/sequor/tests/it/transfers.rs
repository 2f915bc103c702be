//! Many at once who change two aggregates each, in whatever order: all of them end well.

use std::time::Duration;

use sequor::{Batch, Error, Repo, Retry, StoreError, Version};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::bank::{
    Account, Bank, Happened, Refused, bank, cents, deposit, keyed, log_of, look, meta, open,
    tenant, withdraw,
};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    transfers_in_opposite_order_end_well,
    batches_in_opposite_order_end_well,
    transfers_among_five_accounts_by_two_services_end_well,
    the_third_try_of_a_decider_holds_its_aggregate,
);

/// Moves money from one account to the other.
async fn transfer<H: Home>(run: &Run, repo: &mut Repo<Watched<H>>) -> Result<i64, Error<Refused>> {
    let from = repo.load::<Account>(&run.accounts[0]).await?;
    let to = repo.load::<Account>(&run.accounts[1]).await?;
    if repo.get(from).cents < run.cents {
        return Err(Error::Rejected(Refused::Overdrawn));
    }
    repo.emit(from, &Happened::Posted { cents: -run.cents })?;
    repo.emit(to, &Happened::Posted { cents: run.cents })?;
    Ok(repo.get(from).cents)
}

/// A service whose handler transfers.
fn transferring<H: Home>(store: &Watched<H>) -> Bank<H> {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> { Box::pin(transfer(run, repo)) });
    bank(store).handler(handler).build().unwrap()
}

const ACCOUNTS: [&str; 5] = ["a", "b", "c", "d", "e"];
/// What each account has at first: more than all transfers together take.
const FUNDS: i64 = 1_000;

async fn fund<H: Home>(bank: &Bank<H>, accounts: &[&str]) {
    open(bank, accounts).await;
    for account in accounts {
        bank.execute(deposit(account, FUNDS), meta()).await.unwrap();
    }
}

async fn sum<H: Home>(bank: &Bank<H>, accounts: &[&str]) -> i64 {
    let mut sum = 0;
    for account in accounts {
        sum += cents(bank, account).await;
    }
    sum
}

async fn transfers_in_opposite_order_end_well<H: Home>(store: Watched<H>) {
    let bank = transferring(&store);
    fund(&bank, &["a", "b"]).await;
    let mut running = JoinSet::new();
    for task in 0..8 {
        let (bank, there) = (bank.clone(), task % 2 == 0);
        running.spawn(async move {
            for n in 0..10 {
                let accounts = if there { ["a", "b"] } else { ["b", "a"] };
                let meta = keyed(&format!("{task}-{n}"));
                assert!(bank.execute(run(&accounts, 1), meta).await.unwrap().is_executed());
            }
        });
    }
    running.join_all().await;
    assert_eq!((cents(&bank, "a").await, cents(&bank, "b").await), (FUNDS, FUNDS));
    // Opened, funded, and 80 times posted.
    let looked = bank.execute(look("a"), meta()).await.unwrap();
    assert_eq!(looked.streams[0].version, Version::new(82));
}

/// Two deciders in one transaction.
async fn batches_in_opposite_order_end_well<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    fund(&bank, &["a", "b"]).await;
    let mut running = JoinSet::new();
    for task in 0..8 {
        let (bank, there) = (bank.clone(), task % 2 == 0);
        running.spawn(async move {
            for _ in 0..5 {
                let [from, to] = if there { ["a", "b"] } else { ["b", "a"] };
                let batch = Batch::new().then(withdraw(from, 1), meta());
                bank.execute_all(batch.then(deposit(to, 1), meta())).await.unwrap();
            }
        });
    }
    running.join_all().await;
    assert_eq!((cents(&bank, "a").await, cents(&bank, "b").await), (FUNDS, FUNDS));
}

/// Between any two of five accounts, while deciders deposit; through two services, as two processes
/// have them.
async fn transfers_among_five_accounts_by_two_services_end_well<H: Home>(store: Watched<H>) {
    let banks = [transferring(&store), transferring(&store)];
    fund(&banks[0], &ACCOUNTS).await;
    let mut running = JoinSet::new();
    for task in 0..10_usize {
        let bank = banks[task % 2].clone();
        running.spawn(async move {
            for n in 0..8 {
                let (from, way) = ((task + n * 3) % 5, 1 + (task + n) % 4);
                let accounts = [ACCOUNTS[from], ACCOUNTS[(from + way) % 5]];
                bank.execute(run(&accounts, 5), keyed(&format!("{task}-{n}"))).await.unwrap();
                if n % 4 == 0 {
                    bank.execute(deposit(accounts[1], 1), meta()).await.unwrap();
                }
            }
        });
    }
    running.join_all().await;
    for bank in &banks {
        assert_eq!(sum(bank, &ACCOUNTS).await, 5 * FUNDS + 20);
    }
    let posted = log_of(&store, tenant(1)).await.len();
    assert_eq!(posted, 5 * 2 + 80 * 2 + 20, "each once");
}

/// Twice it loses by a conflict; the third time nobody can come in between.
async fn the_third_try_of_a_decider_holds_its_aggregate<H: Home>(store: Watched<H>) {
    let patient = Retry { pause: Duration::ZERO, ..Retry::DEFAULT };
    let banks = [(), ()].map(|()| bank(&store).retry(patient).build().unwrap());
    open(&banks[0], &["a"]).await;
    let stream = banks[0].execute(look("a"), meta()).await.unwrap().streams[0].stream.clone();
    let (expected, actual) = (Version::new(1), Version::new(2));
    let conflict = StoreError::Conflict { stream: stream.clone(), expected, actual };
    store.watch.fail(Door::Commit, [conflict.clone(), conflict]);
    let begun = store.watch.calls(Door::Begin);
    store.watch.close_gate(Door::Write);
    let first = banks[0].clone();
    let third = tokio::spawn(async move { first.execute(deposit("a", 1), keyed("third")).await });
    store.watch.at_gate(1).await;
    assert_eq!(store.watch.held(), [stream]);
    let rival = banks[1].clone();
    let mut rival = tokio::spawn(async move { rival.execute(deposit("a", 2), meta()).await });
    // Nothing tells when somebody waits; who need not, is done by then.
    let early = timeout(Duration::from_millis(200), &mut rival).await;
    assert!(early.is_err(), "somebody came in between: {early:?}");
    store.watch.open_gate();
    let third = third.await.unwrap().unwrap();
    assert_eq!(third.streams[0].version, Version::new(2), "it came first");
    assert_eq!(rival.await.unwrap().unwrap().streams[0].version, Version::new(3));
    assert_eq!(store.watch.calls(Door::Begin) - begun, 1, "it was not tried a fourth time");
    assert_eq!(cents(&banks[0], "a").await, 3);
}
