//! A failed command leaves nothing behind, and a retry under its key runs.

use sequor::{Error, Invalid, StoreError};

use crate::bank::{Account, Ask, log_of};
use crate::bank::{
    Happened, Refused, bank, cents, deposit, key, keyed, meta, open, tenant, withdraw,
};
use crate::doing::{Follow, Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    a_rejected_decision_leaves_no_record_and_a_retry_runs,
    a_rejected_handler_leaves_nothing_and_a_retry_runs,
    an_unreachable_store_is_told_and_a_retry_runs,
    a_lost_connection_is_unknown_and_a_retry_tells,
    a_command_that_nobody_handles_is_invalid,
    a_rejection_by_a_handler_keeps_its_type,
);

async fn a_rejected_decision_leaves_no_record_and_a_retry_runs<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let rejected = bank.execute(withdraw("a", 20), keyed("k")).await;
    assert!(matches!(rejected, Err(Error::Rejected(Refused::Overdrawn))), "{rejected:?}");
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
    bank.execute(deposit("a", 20), meta()).await.unwrap();
    let retried = bank.execute(withdraw("a", 20), keyed("k")).await.unwrap();
    assert!(retried.is_executed());
    assert!(bank.execute(withdraw("a", 20), keyed("k")).await.unwrap().is_replayed());
    assert_eq!(cents(&bank, "a").await, 0);
}

async fn a_rejected_handler_leaves_nothing_and_a_retry_runs<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            H::add(repo.connection()?, tenant(1), run.cents).await.unwrap();
            let account = repo.load::<Account>("a").await?;
            repo.emit(account, &Happened::Posted { cents: -run.cents })?;
            repo.issue(deposit("a", 1_000), None)?;
            if repo.get(account).cents < 0 {
                return Err(Error::Rejected(Refused::Overdrawn));
            }
            Ok(repo.get(account).cents)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    open(&bank, &["a"]).await;
    let rejected = bank.execute(run(&[], 20), keyed("k")).await;
    assert!(matches!(rejected, Err(Error::Rejected(Refused::Overdrawn))), "{rejected:?}");
    assert_eq!(cents(&bank, "a").await, 0);
    assert_eq!(store.inner.sum(tenant(1)).await, 0);
    bank.execute(deposit("a", 30), meta()).await.unwrap();
    let retried = bank.execute(run(&[], 20), keyed("k")).await.unwrap();
    assert_eq!((retried.is_executed(), retried.output), (true, Some(10)));
    assert_eq!(store.inner.sum(tenant(1)).await, 20);
    assert_eq!(cents(&bank, "a").await, 1_010);
}

async fn an_unreachable_store_is_told_and_a_retry_runs<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, _| -> Handling<'_, Run> { Box::pin(async { Ok(7) }) });
    let bank = bank(&store).handler(handler).build().unwrap();
    open(&bank, &["a"]).await;
    let away = || [StoreError::unavailable("away")];
    store.watch.fail(Door::Commit, away());
    let failed = bank.execute(deposit("a", 20), keyed("k")).await;
    assert!(matches!(failed, Err(Error::Unavailable { .. })), "{failed:?}");
    store.watch.fail(Door::Begin, away());
    let failed = bank.execute(run(&[], 20), keyed("run")).await;
    assert!(matches!(failed, Err(Error::Unavailable { .. })), "{failed:?}");
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().is_executed());
    assert!(bank.execute(run(&[], 20), keyed("run")).await.unwrap().is_executed());
}

async fn a_lost_connection_is_unknown_and_a_retry_tells<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    store.watch.fail(Door::Commit, [StoreError::Unknown]);
    let unknown = bank.execute(deposit("a", 20), keyed("k")).await;
    assert!(matches!(unknown, Err(Error::Unknown { .. })), "{unknown:?}");
    store.watch.lose_next_answer();
    let unknown = bank.execute(deposit("a", 20), keyed("k")).await;
    let Err(Error::Unknown { command_id }) = unknown else { panic!("{unknown:?}") };
    let retried = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    assert!(retried.is_replayed());
    assert_eq!(retried.command_id, command_id);
    assert_eq!(cents(&bank, "a").await, 20);
}

async fn a_command_that_nobody_handles_is_invalid<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    for meta in [meta(), keyed("k")] {
        let unhandled = bank.execute(Follow { number: 1 }, meta).await;
        let Err(Error::Invalid(Invalid::NoHandler { name })) = unhandled else {
            panic!("{unhandled:?}")
        };
        assert_eq!(name, "bank.follow");
    }
    let log = log_of(&store, tenant(1)).await;
    assert!(log.is_empty());
}

async fn a_rejection_by_a_handler_keeps_its_type<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<Account>("a").await?;
            let ask = Ask::Withdraw { account: "a".into(), cents: 1 };
            let decision = sequor::Decider::decide(repo.get(account), &ask);
            repo.take_in(account, decision.map_err(Error::Rejected)?)?;
            Ok(7)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    for meta in [meta(), keyed("k")] {
        let rejected = bank.execute(run(&[], 1), meta).await;
        assert!(matches!(rejected, Err(Error::Rejected(Refused::NotOpen))), "{rejected:?}");
    }
}
