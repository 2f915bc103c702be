//! Handlers: several aggregates, rows of their own, all of it together or nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use sequor::{Error, Invalid, Repo, Version};
use sequor_testkit::{Scenario, assert_once};

use crate::bank::{
    Account, Happened, Refused, bank, cents, deposit, keyed, log_of, meta, open, tenant,
};
use crate::bank::{Bank, look};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    a_handler_changes_several_aggregates_at_once,
    rows_of_its_own_share_the_transaction,
    a_known_key_does_not_run_the_handler,
    loading_twice_gives_the_same_aggregate_with_what_has_happened,
    a_handler_that_does_nothing_is_recorded,
    a_panic_rolls_everything_back,
    deciders_see_at_once_what_a_handler_did,
    a_handler_sees_at_once_what_deciders_did,
    a_decider_has_no_connection_and_a_handler_may_use_every_method,
    versions_are_those_that_were_loaded,
    a_handler_that_executes_on_its_own_service_is_told_at_once,
);

/// Moves money from one account to another, and counts it in rows of its own.
async fn transfer<H: Home>(run: &Run, repo: &mut Repo<Watched<H>>) -> Result<i64, Error<Refused>> {
    let from = repo.load::<Account>(&run.accounts[0]).await?;
    let to = repo.load::<Account>(&run.accounts[1]).await?;
    H::add(repo.connection()?, tenant(1), run.cents).await.unwrap();
    repo.emit(to, &Happened::Posted { cents: run.cents })?;
    repo.emit(from, &Happened::Posted { cents: -run.cents })?;
    if repo.get(from).cents < 0 {
        return Err(Error::Rejected(Refused::Overdrawn));
    }
    Ok(repo.get(from).cents)
}

async fn transfers<H: Home>(store: &Watched<H>) -> Bank<H> {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> { Box::pin(transfer(run, repo)) });
    let bank = bank(store).handler(handler).build().unwrap();
    open(&bank, &["a", "b"]).await;
    bank.execute(deposit("a", 100), meta()).await.unwrap();
    bank
}

async fn a_handler_changes_several_aggregates_at_once<H: Home>(store: Watched<H>) {
    let bank = transfers(&store).await;
    let answered = Scenario::on(&bank).when(run(&["a", "b"], 30), meta()).await;
    let answered = answered.then_executed().then_output(&70);
    let posted = [Happened::Posted { cents: 30 }, Happened::Posted { cents: -30 }];
    let receipt = answered.then_events(posted).await.into_answer().unwrap();
    let versions: Vec<_> =
        receipt.streams.iter().map(|at| (at.stream.id.as_str(), at.version)).collect();
    assert_eq!(versions, [("a", Version::new(3)), ("b", Version::new(2))]);
    assert_eq!((cents(&bank, "a").await, cents(&bank, "b").await), (70, 30));
}

async fn rows_of_its_own_share_the_transaction<H: Home>(store: Watched<H>) {
    let bank = transfers(&store).await;
    bank.execute(run(&["a", "b"], 30), meta()).await.unwrap();
    assert_eq!(store.inner.sum(tenant(1)).await, 30);
    let rejected = bank.execute(run(&["a", "b"], 500), keyed("k")).await;
    assert!(matches!(rejected, Err(Error::Rejected(Refused::Overdrawn))), "{rejected:?}");
    assert_eq!(store.inner.sum(tenant(1)).await, 30);
    assert_eq!((cents(&bank, "a").await, cents(&bank, "b").await), (70, 30));
}

async fn a_known_key_does_not_run_the_handler<H: Home>(store: Watched<H>) {
    let bank = transfers(&store).await;
    assert_once(&bank, run(&["a", "b"], 30), keyed("k"), 10).await;
    assert_eq!(store.inner.sum(tenant(1)).await, 30);
}

async fn loading_twice_gives_the_same_aggregate_with_what_has_happened<H: Home>(store: Watched<H>) {
    let bank = transfers(&store).await;
    let same = bank.execute(run(&["a", "a"], 30), meta()).await.unwrap();
    assert_eq!(same.output, Some(100));
    assert_eq!(same.streams.len(), 1);
    assert_eq!(same.streams[0].version, Version::new(4));
    assert_eq!(cents(&bank, "a").await, 100);
}

async fn a_handler_that_does_nothing_is_recorded<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, _| -> Handling<'_, Run> {
        let answer = run.cents;
        Box::pin(async move { Ok(answer) })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    let receipt = assert_once(&bank, run(&[], 7), keyed("k"), 3).await;
    assert!(receipt.streams.is_empty());
    assert_eq!((receipt.position, receipt.output), (None, Some(7)));
}

async fn a_panic_rolls_everything_back<H: Home>(store: Watched<H>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&runs);
    let handler = doing(move |run: &Run, repo| -> Handling<'_, Run> {
        let first = counts.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            let left = transfer(run, repo).await?;
            assert!(!first, "the handler panics, as told");
            Ok(left)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    open(&bank, &["a", "b"]).await;
    bank.execute(deposit("a", 100), meta()).await.unwrap();
    let panics = bank.clone();
    let panicked =
        tokio::spawn(async move { panics.execute(run(&["a", "b"], 30), keyed("k")).await });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(store.inner.sum(tenant(1)).await, 0);
    assert_eq!((cents(&bank, "a").await, cents(&bank, "b").await), (100, 0));
    assert!(bank.execute(run(&["a", "b"], 30), keyed("k")).await.unwrap().is_executed());
    assert_eq!(store.inner.sum(tenant(1)).await, 30);
}

async fn deciders_see_at_once_what_a_handler_did<H: Home>(store: Watched<H>) {
    let bank = transfers(&store).await;
    cents(&bank, "b").await;
    bank.execute(run(&["a", "b"], 30), meta()).await.unwrap();
    let looked = bank.execute(look("b"), meta()).await.unwrap();
    assert_eq!((looked.output.unwrap().cents, looked.streams[0].version), (30, Version::new(2)));
}

async fn a_handler_sees_at_once_what_deciders_did<H: Home>(store: Watched<H>) {
    let bank = transfers(&store).await;
    for cents in 1..5 {
        bank.execute(deposit("a", 10), meta()).await.unwrap();
        let left = bank.execute(run(&["a", "b"], 10), meta()).await.unwrap();
        assert_eq!(left.output, Some(100), "round {cents}");
    }
}

async fn a_decider_has_no_connection_and_a_handler_may_use_every_method<H: Home>(
    store: Watched<H>,
) {
    let handler = doing(|run: &Run, repo: &mut Repo<Watched<H>>| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<Account>("a").await?;
            let other = repo.load::<Account>("b").await?;
            repo.guard(other);
            repo.hold(account, crate::bank::ADDRESS, "ann@example.org")?;
            repo.release(account, crate::bank::NUMBER)?;
            repo.release_all(other);
            repo.emit(account, &Happened::Posted { cents: run.cents })?;
            let decision = sequor::Decider::decide(repo.get(other), &deposit("b", 1));
            let balance = repo.take_in(other, decision.map_err(Error::Rejected)?)?;
            repo.issue(deposit("b", 1), Some(crate::bank::key("derived")))?;
            H::add(repo.connection()?, tenant(1), balance.cents).await.unwrap();
            assert!(!format!("{repo:?}").is_empty());
            assert_eq!(repo.version(account), Version::new(1));
            Ok(repo.get(account).cents)
        })
    });
    let bank = bank(&store).aggregates_cached_max(0).handler(handler).build().unwrap();
    open(&bank, &["a", "b"]).await;
    let receipt = bank.execute(run(&[], 5), keyed("k")).await.unwrap();
    assert_eq!(receipt.output, Some(5));
    assert_eq!((cents(&bank, "a").await, cents(&bank, "b").await), (5, 2));
    assert_eq!(store.watch.second_connections(), 0);
    let log = log_of(&store, tenant(1)).await;
    assert_eq!(log.len(), 5);
}

async fn versions_are_those_that_were_loaded<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, repo: &mut Repo<Watched<H>>| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<Account>("a").await?;
            let before = repo.version(account);
            repo.emit(account, &Happened::Posted { cents: 1 })?;
            assert_eq!(repo.version(account), before);
            Ok(i64::try_from(before.get()).unwrap())
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    for expected in 0..3 {
        let receipt = bank.execute(run(&[], 0), meta()).await.unwrap();
        assert_eq!(receipt.output, Some(expected));
    }
}

async fn a_handler_that_executes_on_its_own_service_is_told_at_once<H: Home>(store: Watched<H>) {
    let own: Arc<OnceLock<Bank<H>>> = Arc::default();
    let inside = Arc::clone(&own);
    let handler = doing(move |_: &Run, _: &mut Repo<Watched<H>>| -> Handling<'_, Run> {
        let bank = inside.get().unwrap().clone();
        Box::pin(async move {
            let refused = bank.execute(deposit("a", 1), meta()).await.unwrap_err();
            assert!(matches!(refused, Error::Invalid(Invalid::InsideHandler)), "{refused:?}");
            Ok(0)
        })
    });
    let bank = bank(&store).handler::<Run>(handler).build().unwrap();
    own.set(bank.clone()).unwrap();
    assert!(bank.execute(run(&[], 0), meta()).await.unwrap().is_executed());
}
