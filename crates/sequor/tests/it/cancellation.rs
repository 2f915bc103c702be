//! A caller who goes away at any moment changes nothing: whole or not at all, and a retry tells.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use sequor::{Error, Receipt, Version};

use crate::bank::{
    Account, Bank, Happened, bank, cents, deposit, keyed, log_of, look, meta, open, tenant,
};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(callers_that_go_away_leave_nothing_half_done);

const ROUNDS: u64 = 300;

/// xorshift: chance that can be repeated.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

type Trying<'b> = Pin<Box<dyn Future<Output = bool> + Send + 'b>>;

fn executed<O, R>(answer: Result<Receipt<O>, Error<R>>) -> bool {
    answer.is_ok_and(|receipt| receipt.is_executed())
}

/// Tries the command of a round: a decider's on even rounds, a handler's on odd ones.
fn attempt<H: Home>(bank: &Bank<H>, round: u64) -> Trying<'_> {
    let meta = keyed(&format!("round-{round}"));
    if round.is_multiple_of(2) {
        Box::pin(async move { executed(bank.execute(deposit("a", 1), meta).await) })
    } else {
        Box::pin(async move { executed(bank.execute(run(&["a"], 1), meta).await) })
    }
}

async fn callers_that_go_away_leave_nothing_half_done<H: Home>(store: Watched<H>) {
    let seed = std::env::var("SEQUOR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x5eed_0069);
    eprintln!("to replay: SEQUOR_SEED={seed} cargo test -p sequor --test it cancellation");
    let mut chance = Chance(seed);
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<Account>("a").await?;
            tokio::task::yield_now().await;
            repo.emit(account, &Happened::Posted { cents: run.cents })?;
            H::add(repo.connection()?, tenant(1), 1).await.unwrap();
            repo.issue(look("a"), None)?;
            Ok(7)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    open(&bank, &["a"]).await;
    for round in 0..ROUNDS {
        let mut trying = attempt(&bank, round);
        for _ in 0..chance.below(12) {
            if trying.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(trying);
    }
    for round in 0..ROUNDS {
        attempt(&bank, round).await;
        assert!(!attempt(&bank, round).await, "round {round} took effect twice");
    }
    let receipt = bank.execute(look("a"), meta()).await.unwrap();
    assert_eq!(receipt.streams[0].version, Version::new(ROUNDS + 1));
    assert_eq!(cents(&bank, "a").await, i64::try_from(ROUNDS).unwrap());
    assert_eq!(store.inner.sum(tenant(1)).await, i64::try_from(ROUNDS / 2).unwrap());
    let log = log_of(&store, tenant(1)).await;
    assert_eq!(log.len() as u64, ROUNDS + 1);
}
