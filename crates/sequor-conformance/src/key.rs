//! A key takes effect once, and is answered with what came of it.

use sequor_core::ports::{Committed, Transaction};
use sequor_core::{Record, StoreError};
use tokio::task::{JoinHandle, JoinSet};

use crate::harness::Harness;
use crate::sample::{DOOMED, EMAIL, account, command, json, tenant};
use crate::world::{World, assert_conflict, fresh, known};

/// The same command again is answered with the first record, part by part.
pub(crate) async fn key_known_answers_with_the_first_record<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let sample = || command(t).key("k").actor("ada").at(1_700_000_000_123_456);
    let commit = sample().giving(&json(r#"{"n":1}"#)).on("a", 0).events(2).on("b", 0).build();
    let first = world.fresh(commit.clone()).await;
    let again = world.known(commit).await;
    assert_eq!(again.command_id, first.command_id);
    assert_eq!(again.command_name, first.command_name);
    assert_eq!(again.fingerprint, first.fingerprint);
    assert_eq!(again.actor, first.actor);
    assert_eq!(again.recorded_at, first.recorded_at);
    assert_eq!(again.streams, first.streams);
    assert_eq!(again.position, first.position);
    assert_eq!(again.output, first.output);
    assert_eq!(again, first);
}

/// A known key writes nothing, not even to other aggregates.
pub(crate) async fn key_known_writes_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).key("k").on("a", 0).event().build()).await;
    let other = command(t).key("k").on("b", 0).event().hold(EMAIL, "x").build();
    world.known(other).await;
    assert_eq!(world.log(t).await.len(), 1);
    assert!(world.events(&account(t, "b")).await.is_empty());
    world.fresh(command(t).on("c", 0).hold(EMAIL, "x").build()).await;
}

/// Another request under a known key changes nothing of the first record.
pub(crate) async fn key_reused_keeps_the_first_record<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let sample = command(t).key("k").actor("ada").asking(&json("20")).giving(&json("1"));
    let first = world.fresh(sample.on("a", 0).event().build()).await;
    let sample = command(t).key("k").actor("bob").asking(&json("50")).giving(&json("2"));
    let other = sample.named("account.close").at(99).on("a", 1).event().build();
    assert_ne!(other.fingerprint, first.fingerprint);
    assert_eq!(world.known(other).await, first, "the first record answers");
    assert_eq!(world.record(t, "k").await, Some(first), "the first record stays");
    assert_eq!(world.version(&account(t, "a")).await, 1);
}

/// Of 50 at once one runs, and all are answered alike.
pub(crate) async fn key_raced_by_fifty_runs_once<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut racers = JoinSet::new();
    for n in 0..50 {
        let world = world.clone();
        let commit = command(t).key("k").on(&format!("a{n}"), 0).event().build();
        racers.spawn(async move { world.commit_counted(commit).await });
    }
    let outcomes = racers.join_all().await;
    let ran = outcomes.iter().filter(|one| matches!(one, Ok(Committed::Fresh(_)))).count();
    assert_eq!(ran, 1, "exactly one runs");
    let records: Vec<Record> = outcomes.into_iter().map(|one| record_of(one.unwrap())).collect();
    assert!(records.iter().all(|record| *record == records[0]));
    assert_eq!(world.log(t).await.len(), 1);
    assert_eq!(world.tally(t).await.count, 1);
}

fn record_of(committed: Committed) -> Record {
    match committed {
        Committed::Fresh(record) | Committed::Known(record) => record,
    }
}

/// After a conflict the key is free.
pub(crate) async fn key_of_a_conflict_leaves_no_record<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.refused(command(t).key("k").on("a", 7).event().build()).await;
    assert_eq!(world.record(t, "k").await, None);
    world.fresh(command(t).key("k").on("a", 0).event().build()).await;
}

/// After a clash of unique values the key is free.
pub(crate) async fn key_of_a_taken_value_leaves_no_record<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).hold(EMAIL, "x").build()).await;
    world.refused(command(t).key("k").on("b", 0).event().hold(EMAIL, "x").build()).await;
    assert_eq!(world.record(t, "k").await, None);
    world.fresh(command(t).key("k").on("b", 0).event().hold(EMAIL, "y").build()).await;
}

/// After a projection failed the key is free.
pub(crate) async fn key_of_a_failing_projection_leaves_no_record<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let doomed = command(t).key("k").on("a", 0).event_named(DOOMED).build();
    assert!(world.commit_counted(doomed).await.is_err());
    assert_eq!(world.record(t, "k").await, None);
    fresh(world.commit_counted(command(t).key("k").on("a", 0).event().build()).await);
}

/// After a transaction was dropped its keys are free.
pub(crate) async fn key_of_a_dropped_transaction_leaves_no_record<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let commit = command(t).key("k").on("a", 0).event().build();
    let mut transaction = world.begin(t).await;
    let key = commit.meta.key.clone().unwrap();
    assert_eq!(transaction.claim(t, &key).await.unwrap(), None);
    world.write(&mut transaction, commit.clone()).await.unwrap();
    drop(transaction);
    assert_eq!(world.record(t, "k").await, None);
    world.fresh(commit).await;
}

/// A claim without a write is no record.
pub(crate) async fn key_claimed_and_not_written_leaves_no_record<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut transaction = world.begin(t).await;
    assert_eq!(transaction.claim(t, &"k".parse().unwrap()).await.unwrap(), None);
    assert!(transaction.commit().await.unwrap().is_empty());
    assert_eq!(world.record(t, "k").await, None);
    world.fresh(command(t).key("k").on("a", 0).event().build()).await;
}

/// Who waited for a rival that came to nothing runs, and reports no replay.
pub(crate) async fn key_waiter_runs_when_its_rival_rolls_back<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let (transaction, waiter) = rivals(&world).await;
    drop(transaction);
    fresh(waiter.await.unwrap());
    assert_eq!(world.version(&account(t, "waiter")).await, 1);
    assert!(world.events(&account(t, "rival")).await.is_empty());
}

/// Who waited for a rival that succeeded is answered with the rival's record.
pub(crate) async fn key_waiter_is_answered_when_its_rival_commits<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let (transaction, waiter) = rivals(&world).await;
    let records = transaction.commit().await.unwrap();
    assert_eq!(known(waiter.await.unwrap()), records[0]);
    assert!(world.events(&account(t, "waiter")).await.is_empty());
}

type Waiter = JoinHandle<Result<Committed, StoreError>>;

/// An open transaction that has written under a key, and a commit under the same key.
async fn rivals<H: Harness>(world: &World<H>) -> (crate::world::Open<H>, Waiter) {
    let t = tenant(1);
    let mut transaction = world.begin(t).await;
    let commit = command(t).key("k").on("rival", 0).event().build();
    let key = commit.meta.key.clone().unwrap();
    assert_eq!(transaction.claim(t, &key).await.unwrap(), None);
    world.write(&mut transaction, commit).await.unwrap();
    let waiter = command(t).key("k").on("waiter", 0).event().build();
    let waiter = world.start(waiter).await;
    world.assert_waits(&waiter).await;
    assert_eq!(world.record(t, "k").await, None, "answered by what is not true yet");
    (transaction, waiter)
}

/// Keys are compared byte for byte.
pub(crate) async fn key_differs_by_case<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let lower = world.fresh(command(t).key("key-k").build()).await;
    let upper = world.fresh(command(t).key("key-K").build()).await;
    assert_eq!(world.record(t, "key-k").await, Some(lower));
    assert_eq!(world.record(t, "key-K").await, Some(upper));
}

/// The longest keys differ in their last byte.
pub(crate) async fn key_of_255_bytes_is_kept_whole<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let long = |last: char| format!("{}{last}", "a".repeat(254));
    let one = world.fresh(command(t).key(&long('1')).build()).await;
    let two = world.fresh(command(t).key(&long('2')).build()).await;
    assert_eq!(world.record(t, &long('1')).await, Some(one));
    assert_eq!(world.record(t, &long('2')).await, Some(two));
    assert_eq!(world.record(t, &"a".repeat(254)).await, None);
}

/// No character of a key means anything to a store.
pub(crate) async fn key_keeps_every_visible_character<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let all: String = ('!'..='~').collect();
    let mut records = Vec::new();
    let keys = ('!'..='~').map(String::from).chain([all, "%".repeat(9), "'--".to_owned()]);
    for key in keys {
        let record = world.fresh(command(t).key(&key).giving(&json("1")).build()).await;
        records.push((key, record));
    }
    for (key, record) in records {
        assert_eq!(world.known(command(t).key(&key).build()).await, record, "{key}");
    }
}

/// Without a key nothing is ever a replay, however alike it looks.
pub(crate) async fn key_absent_never_answers<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for expected in 0..3 {
        let record = world.fresh(command(t).on("a", expected).event().build()).await;
        assert_eq!(record.fingerprint, None);
    }
    for _ in 0..3 {
        world.fresh(command(t).build()).await;
    }
    assert_eq!(world.version(&account(t, "a")).await, 3);
}

/// A retry was decided on what its first run has changed: the key must answer all the same.
pub(crate) async fn key_known_wins_over_a_conflict<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let commit = command(t).key("k").on("a", 0).event().hold(EMAIL, "x").build();
    let first = world.fresh(commit.clone()).await;
    assert_eq!(world.known(commit).await, first);
    world.fresh(command(t).on("a", 1).event().release(EMAIL).build()).await;
    world.fresh(command(t).on("b", 0).hold(EMAIL, "x").build()).await;
    let clashing = command(t).key("k").on("c", 9).event().hold(EMAIL, "x").build();
    assert_eq!(world.known(clashing).await, first);
}

/// A decision on old versions may clash because it is old: deciding again comes first.
pub(crate) async fn key_conflict_wins_over_a_taken_value<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    let both = command(t).key("k").on("b", 4).event().hold(EMAIL, "x").build();
    assert_conflict(&world.refused(both).await, &account(t, "b"), 4, 0);
    let sample = command(t).key("k").on("b", 0).hold(EMAIL, "x");
    let both = sample.on("c", 2).event().build();
    assert_conflict(&world.refused(both).await, &account(t, "c"), 2, 0);
}

/// A failed attempt leaves the key to any other content.
pub(crate) async fn key_after_a_failure_takes_other_content<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let failing = command(t).key("k").asking(&json("1")).on("a", 1).event().build();
    world.refused(failing).await;
    let other = command(t).key("k").asking(&json("2")).on("a", 0).event().build();
    let record = world.fresh(other.clone()).await;
    assert_eq!(record.fingerprint, other.fingerprint);
}
