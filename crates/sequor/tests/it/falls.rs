//! Commits under way that come to nothing: whoever was decided on them is decided again, and hears
//! nothing of it.

use std::convert::Infallible;

use sequor::{Aggregate, Command, Decider, Decision, Error, Event, Receipt, Retry, Version};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::bank::{
    Ask, Bank, Refused, bank, cents, deposit, keyed, look, mail, meta, open, withdraw,
};
use crate::home::Home;
use crate::hot::{CALLERS, in_order};
use crate::watched::{Door, Watched};

on_every_store!(
    a_refusal_on_what_came_to_nothing_is_never_said,
    a_panic_on_what_came_to_nothing_is_nobodys,
    who_hangs_on_a_failed_commit_is_decided_again,
    a_third_of_replays_and_rejections_is_answered_without_a_conflict,
    values_that_are_taken_fail_nobody_else,
    a_version_of_another_maker_is_not_what_was_decided_on,
    a_lost_answer_is_found_again,
    callers_that_go_away_among_many_lose_nothing,
);

async fn a_refusal_on_what_came_to_nothing_is_never_said<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    bank.execute(look("b"), keyed("used")).await.unwrap();
    store.watch.close_gate(Door::Answer);
    // The account would be closed, and refuse the deposit; but the key is that of another request.
    let close = Ask::Close { account: "a".into() };
    let asks = vec![(close, keyed("used")), (deposit("a", 1), keyed("deposit"))];
    let running = in_order(&bank, asks).await;
    store.watch.at_gate(1).await;
    store.watch.open_gate();
    let (done, failed): (Vec<_>, Vec<_>) =
        running.join_all().await.into_iter().partition(Result::is_ok);
    assert!(matches!(failed[..], [Err(Error::KeyReused { .. })]), "{failed:?}");
    assert_eq!((done.len(), cents(&bank, "a").await), (1, 1));
}

/// Panics when a burnt one is touched.
#[derive(Clone, Default)]
struct Fuse {
    is_burnt: bool,
}

#[derive(Debug, Command, Serialize, Deserialize)]
#[command(prefix = "fuse.", id = fuse)]
enum Handle {
    Burn { fuse: u8 },
    Touch { fuse: u8 },
}

#[derive(Debug, Event, Serialize, Deserialize)]
#[event(prefix = "fuse.")]
enum Handled {
    Burnt,
    Touched,
}

impl Aggregate for Fuse {
    const NAME: &str = "fuse";
    type Event = Handled;

    fn apply(&mut self, handled: &Handled) {
        self.is_burnt |= matches!(handled, Handled::Burnt);
    }
}

impl Decider<Handle> for Fuse {
    fn decide(&self, handle: &Handle) -> Result<Decision<Handled>, Infallible> {
        assert!(!self.is_burnt, "hot");
        Ok(Decision::event(match handle {
            Handle::Burn { .. } => Handled::Burnt,
            Handle::Touch { .. } => Handled::Touched,
        }))
    }
}

async fn a_panic_on_what_came_to_nothing_is_nobodys<H: Home>(store: Watched<H>) {
    let bank = bank(&store).decider::<Fuse, Handle>().build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(look("a"), keyed("used")).await.unwrap();
    for (fuse, key, burns) in [(1, "used", false), (2, "burn", true)] {
        bank.execute(Handle::Touch { fuse }, meta()).await.unwrap();
        store.watch.close_gate(Door::Answer);
        let first = bank.clone();
        let burning =
            tokio::spawn(async move { first.execute(Handle::Burn { fuse }, keyed(key)).await });
        store.watch.at_gate(1).await;
        let second = bank.clone();
        let touching =
            tokio::spawn(async move { second.execute(Handle::Touch { fuse }, meta()).await });
        tokio::task::yield_now().await;
        store.watch.open_gate();
        assert_eq!(burning.await.unwrap().is_ok(), burns);
        assert_eq!(touching.await.is_err_and(|error| error.is_panic()), burns);
    }
}

/// With and without retries: it was nobody's conflict.
async fn who_hangs_on_a_failed_commit_is_decided_again<H: Home>(store: Watched<H>) {
    for (account, retry) in [("a", Retry::DEFAULT), ("b", Retry::OFF)] {
        let bank = bank(&store).retry(retry).build().unwrap();
        open(&bank, &[account, &format!("rival of {account}")]).await;
        let address = format!("{account}@example.org");
        let rival = mail(&format!("rival of {account}"), &address);
        bank.execute(rival, meta()).await.unwrap();
        store.watch.close_gate(Door::Answer);
        let mut asks = vec![(mail(account, &address), keyed(&format!("{account}-mail")))];
        asks.extend((0..5).map(|n| (deposit(account, 1), keyed(&format!("{account}{n}")))));
        let running = in_order(&bank, asks).await;
        store.watch.at_gate(6).await;
        store.watch.open_gate();
        let answers = running.join_all().await;
        let (done, failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert!(matches!(failed[..], [Err(Error::UniqueTaken { .. })]), "{failed:?}");
        assert_eq!((done.len(), cents(&bank, account).await), (5, 5));
    }
}

async fn a_third_of_replays_and_rejections_is_answered_without_a_conflict<H: Home>(
    store: Watched<H>,
) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    for n in 0..CALLERS {
        bank.execute(deposit("a", 1), keyed(&format!("known-{n}"))).await.unwrap();
    }
    let mut running = JoinSet::new();
    for caller in 0..CALLERS {
        let bank = bank.clone();
        running.spawn(async move { mixed(&bank, caller).await });
    }
    running.join_all().await;
    let looked = bank.execute(look("a"), meta()).await.unwrap();
    // Of twelve rounds each, eight deposit.
    let deposits = i64::try_from(CALLERS * 8 + CALLERS).unwrap();
    assert_eq!(looked.output.unwrap().cents, deposits);
    assert_eq!(looked.streams[0].version.get(), CALLERS * 9 + 1);
}

/// Twelve commands, of which two are replays and two are rejected. All get their right answer.
async fn mixed<H: Home>(bank: &Bank<H>, caller: u64) {
    for n in 0..12 {
        match (caller + n) % 6 {
            0 => {
                let known = keyed(&format!("known-{caller}"));
                let again = bank.execute(deposit("a", 1), known).await;
                assert!(again.as_ref().is_ok_and(Receipt::is_replayed), "{again:?}");
            }
            1 => {
                let meta = keyed(&format!("vain-{caller}-{n}"));
                let vain = bank.execute(withdraw("a", 1_000_000), meta).await;
                assert!(matches!(vain, Err(Error::Rejected(Refused::Overdrawn))), "{vain:?}");
            }
            _ => {
                let meta = keyed(&format!("{caller}-{n}"));
                let done = bank.execute(deposit("a", 1), meta).await;
                assert!(done.as_ref().is_ok_and(Receipt::is_executed), "{done:?}");
            }
        }
    }
}

async fn values_that_are_taken_fail_nobody_else<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    bank.execute(mail("b", "taken"), meta()).await.unwrap();
    let mut running = JoinSet::new();
    for caller in 0..CALLERS {
        let bank = bank.clone();
        running.spawn(async move {
            for n in 0..6 {
                let meta = keyed(&format!("{caller}-{n}"));
                match n % 3 {
                    0 => {
                        let taken = bank.execute(mail("a", "taken"), meta).await;
                        assert!(matches!(taken, Err(Error::UniqueTaken { .. })), "{taken:?}");
                    }
                    1 => {
                        let own = mail("a", &format!("{caller}@example.org"));
                        assert!(bank.execute(own, meta).await.unwrap().is_executed());
                    }
                    _ => {
                        let done = bank.execute(deposit("a", 1), meta).await.unwrap();
                        assert!(done.is_executed());
                    }
                }
            }
        });
    }
    running.join_all().await;
    let looked = bank.execute(look("a"), meta()).await.unwrap();
    assert_eq!(looked.streams[0].version.get(), 4 * CALLERS + 1);
    assert_eq!(looked.output.unwrap().cents, i64::try_from(2 * CALLERS).unwrap());
}

/// Ten cents that come to nothing, one cent of another service at the same version, and five that
/// are withdrawn from the ten: the number of the version is right, the decision was on what never was.
async fn a_version_of_another_maker_is_not_what_was_decided_on<H: Home>(store: Watched<H>) {
    let banks = [(), ()].map(|()| bank(&store).build().unwrap());
    open(&banks[0], &["a", "b"]).await;
    banks[0].execute(look("b"), keyed("used")).await.unwrap();
    store.watch.close_gate(Door::Answer);
    let mut running = in_order(&banks[0], vec![(deposit("a", 10), keyed("used"))]).await;
    store.watch.at_gate(1).await;
    let stranger = banks[1].clone();
    let stranger = tokio::spawn(async move { stranger.execute(deposit("a", 1), meta()).await });
    store.watch.at_gate(2).await;
    let bank = banks[0].clone();
    running.spawn(async move { bank.execute(withdraw("a", 5), keyed("withdraw")).await });
    store.watch.at_gate(3).await;
    store.watch.open_gate();
    assert!(stranger.await.unwrap().unwrap().is_executed());
    let answers = running.join_all().await;
    assert!(answers.iter().any(|one| matches!(one, Err(Error::KeyReused { .. }))), "{answers:?}");
    let overdrawn = |one: &_| matches!(one, &Err(Error::Rejected(Refused::Overdrawn)));
    assert!(answers.iter().any(overdrawn), "{answers:?}");
    assert_eq!(cents(&banks[1], "a").await, 1);
}

async fn a_lost_answer_is_found_again<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.close_gate(Door::Answer);
    store.watch.lose_next_answer();
    let asks = (0..4).map(|n| (deposit("a", 1), keyed(&n.to_string()))).collect();
    let running = in_order(&bank, asks).await;
    store.watch.at_gate(4).await;
    store.watch.open_gate();
    let answers = running.join_all().await;
    let unknown: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(matches!(unknown[..], [Error::Unknown { .. }]), "{unknown:?}");
    bank.execute(deposit("a", 1), keyed("after")).await.unwrap();
    assert_eq!(cents(&bank, "a").await, 5);
}

/// Half of the callers go away at some moment; a retry of each key finds it done or does it.
async fn callers_that_go_away_among_many_lose_nothing<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let deposits = 10 * CALLERS;
    let mut running = JoinSet::new();
    for n in 0..deposits {
        let bank = bank.clone();
        let task = running
            .spawn(async move { bank.execute(deposit("a", 1), keyed(&n.to_string())).await });
        if n % 2 == 0 {
            for _ in 0..n % 7 {
                tokio::task::yield_now().await;
            }
            task.abort();
        }
    }
    while let Some(ended) = running.join_next().await {
        assert!(
            ended.as_ref().map_or_else(|error| error.is_cancelled(), Result::is_ok),
            "{ended:?}"
        );
    }
    for n in 0..deposits {
        bank.execute(deposit("a", 1), keyed(&n.to_string())).await.unwrap();
    }
    let looked = bank.execute(look("a"), meta()).await.unwrap();
    assert_eq!(looked.streams[0].version, Version::new(deposits + 1));
}
