//! Several commands in one transaction: all or nothing, in order, each with a key of its own.

use sequor::{Batch, Error, Invalid, Mode, Options, Version, is_replay};

use crate::bank::{Ask, Balance, Refused, bank, cents, deposit, key, keyed, look, meta, open};
use crate::bank::{tenant, withdraw};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    all_take_effect_in_order,
    one_that_fails_fails_all,
    a_known_key_is_answered_and_the_others_go_on,
    a_known_key_in_strict_mode_fails_all,
    a_whole_batch_is_replayed,
    one_key_twice_in_a_batch_is_done_once,
    one_key_for_two_requests_in_a_batch_is_refused,
    an_empty_batch_does_nothing,
    a_batch_that_is_too_long_is_refused,
    handlers_and_deciders_share_a_batch,
    a_batch_writes_one_aggregate_several_times,
    versions_named_in_a_batch_count_what_came_before,
);

async fn all_take_effect_in_order<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let batch = Batch::new()
        .then(Ask::Open { account: "a".into() }, meta())
        .then(deposit("a", 30), keyed("k"))
        .then(withdraw("a", 10), meta());
    let receipts = bank.execute_all(batch).await.unwrap();
    assert!(receipts.iter().all(|receipt| receipt.is_executed()));
    let positions: Vec<_> = receipts.iter().map(|receipt| receipt.position.unwrap()).collect();
    assert!(positions.is_sorted() && positions[0] < positions[2], "{positions:?}");
    let versions: Vec<_> =
        receipts.iter().map(|receipt| receipt.streams[0].version.get()).collect();
    assert_eq!(versions, [1, 2, 3]);
    let last: Balance = receipts[2].output.as_ref().unwrap().read().unwrap();
    assert_eq!(last.cents, 20);
    let record = bank.outcome(tenant(1), &key("k")).await.unwrap().unwrap();
    assert_eq!(
        (record.command_id, record.position),
        (receipts[1].command_id, receipts[1].position)
    );
}

async fn one_that_fails_fails_all<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let batch = Batch::new().then(deposit("a", 30), keyed("k")).then(withdraw("a", 31), meta());
    let rejected = bank.execute_all(batch).await;
    let Err(Error::Rejected(rejection)) = rejected else { panic!("{rejected:?}") };
    assert_eq!(rejection.downcast_ref(), Some(&Refused::Overdrawn));
    assert_eq!(cents(&bank, "a").await, 0);
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
}

async fn a_known_key_is_answered_and_the_others_go_on<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(deposit("a", 30), keyed("k")).await.unwrap();
    let batch = Batch::new()
        .then(deposit("a", 1), keyed("one"))
        .then_with(deposit("a", 30), keyed("k"), Options::default().mode(Mode::Output))
        .then(deposit("a", 2), keyed("two"));
    let receipts = bank.execute_all(batch).await.unwrap();
    let executed: Vec<_> = receipts.iter().map(|receipt| receipt.is_executed()).collect();
    assert_eq!(executed, [true, false, true]);
    assert_eq!(receipts[1].command_id, first.command_id);
    assert_eq!(receipts[1].position, first.position);
    let replayed: Balance = receipts[1].output.as_ref().unwrap().read().unwrap();
    assert_eq!(Some(replayed), first.output);
    assert!(receipts[2].position > receipts[0].position);
    assert_eq!(cents(&bank, "a").await, 33);
}

async fn a_known_key_in_strict_mode_fails_all<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 30), keyed("k")).await.unwrap();
    let strict = Options::default().mode(Mode::Strict);
    let batch = Batch::new().then(deposit("a", 1), keyed("one")).then_with(
        deposit("a", 30),
        keyed("k"),
        strict,
    );
    let error = bank.execute_all(batch).await.unwrap_err();
    assert!(is_replay(&error), "{error}");
    assert_eq!(cents(&bank, "a").await, 30);
    let reused = Batch::new().then(deposit("a", 1), meta()).then(deposit("a", 31), keyed("k"));
    let reused = bank.execute_all(reused).await;
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
    assert_eq!(cents(&bank, "a").await, 30);
}

async fn a_whole_batch_is_replayed<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let batch = || Batch::new().then(deposit("a", 1), keyed("1")).then(deposit("a", 2), keyed("2"));
    let first = bank.execute_all(batch()).await.unwrap();
    let again = bank.execute_all(batch()).await.unwrap();
    assert!(again.iter().all(|receipt| receipt.is_replayed()));
    for (first, again) in first.iter().zip(&again) {
        assert_eq!((first.command_id, first.position), (again.command_id, again.position));
    }
    assert_eq!(cents(&bank, "a").await, 3);
}

async fn one_key_twice_in_a_batch_is_done_once<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let batch = Batch::new()
        .then(deposit("a", 5), keyed("k"))
        .then(deposit("a", 1), meta())
        .then(deposit("a", 5), keyed("k"));
    let receipts = bank.execute_all(batch).await.unwrap();
    assert!(receipts[0].is_executed() && receipts[2].is_replayed());
    assert_eq!(receipts[0].command_id, receipts[2].command_id);
    assert_eq!(receipts[0].position, receipts[2].position, "a replay knows the position too");
    assert_eq!(receipts[0].streams, receipts[2].streams);
    assert_eq!(cents(&bank, "a").await, 6);
}

async fn one_key_for_two_requests_in_a_batch_is_refused<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let batch = Batch::new().then(deposit("a", 5), keyed("k")).then(deposit("a", 6), keyed("k"));
    let refused = bank.execute_all(batch).await;
    assert!(matches!(refused, Err(Error::KeyReused { .. })), "{refused:?}");
    assert_eq!(cents(&bank, "a").await, 0);
}

async fn an_empty_batch_does_nothing<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    assert!(bank.execute_all(Batch::new()).await.unwrap().is_empty());
    assert_eq!(store.watch.calls(Door::Begin), 0);
}

async fn a_batch_that_is_too_long_is_refused<H: Home>(store: Watched<H>) {
    let bank = bank(&store).commands_max(3).build().unwrap();
    open(&bank, &["a"]).await;
    let batch = |count| (0..count).fold(Batch::new(), |batch, _| batch.then(look("a"), meta()));
    let refused = bank.execute_all(batch(4)).await;
    let Err(Error::Invalid(Invalid::TooMany { count, max, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((count, max), (4, 3));
    assert_eq!(bank.execute_all(batch(3)).await.unwrap().len(), 3);
}

async fn handlers_and_deciders_share_a_batch<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.issue(deposit("a", run.cents), None)?;
            Ok(run.cents)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    let batch = Batch::new()
        .then(Ask::Open { account: "a".into() }, meta())
        .then(run(&[], 3), keyed("k"))
        .then(look("a"), meta());
    let receipts = bank.execute_all(batch).await.unwrap();
    assert_eq!(receipts.len(), 3, "issued commands have no receipt");
    let looked: Balance = receipts[2].output.as_ref().unwrap().read().unwrap();
    assert_eq!(looked.cents, 0, "issued commands come after the whole batch");
    assert_eq!(cents(&bank, "a").await, 3);
}

async fn a_batch_writes_one_aggregate_several_times<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    for _ in 0..3 {
        let batch =
            (1..=20).fold(Batch::new(), |batch, cents| batch.then(deposit("a", cents), meta()));
        bank.execute_all(batch).await.unwrap();
    }
    let receipt = bank.execute(look("a"), meta()).await.unwrap();
    assert_eq!(receipt.streams[0].version, Version::new(61));
    assert_eq!(receipt.output.unwrap().cents, 630);
}

async fn versions_named_in_a_batch_count_what_came_before<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let seen = |version| Options::default().if_version(Version::new(version));
    let batch = Batch::new()
        .then_with(Ask::Open { account: "a".into() }, meta(), seen(0))
        .then_with(deposit("a", 5), meta(), seen(1))
        .then_with(deposit("a", 5), meta(), seen(2));
    bank.execute_all(batch).await.unwrap();
    assert_eq!(cents(&bank, "a").await, 10);
}
