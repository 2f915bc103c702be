//! Rows of an inline projection share the fate of the events that they follow from.

use std::pin::pin;
use std::sync::Arc;

use sequor_core::StoreError;
use sequor_core::ports::{CommitCommand, Committed, Transaction};
use tokio::task::JoinSet;

use crate::harness::{Harness, Tally};
use crate::sample::projections::{Fragile, Waiting, Watching};
use crate::sample::{DOOMED, EMAIL, PANICKING, account, command, json, tenant};
use crate::world::{World, fresh, known, poll_once};

/// Rows are there as soon as the commit is answered.
pub(crate) async fn projection_rows_appear_with_the_commit<H: Harness>(world: World<H>) {
    let t = tenant(1);
    assert_eq!(world.tally(t).await, Tally::default());
    fresh(world.commit_counted(command(t).on("a", 0).events(3).build()).await);
    assert_eq!(world.tally(t).await, Tally { count: 3, sum: 3 });
    fresh(world.commit_counted(command(t).on("a", 3).events(2).build()).await);
    assert_eq!(world.tally(t).await, Tally { count: 5, sum: 5 });
}

/// Rows belong to the tenant of the event.
pub(crate) async fn projection_rows_belong_to_a_tenant<H: Harness>(world: World<H>) {
    for (number, events) in [(1, 1), (2, 2), (3, 3)] {
        fresh(
            world.commit_counted(command(tenant(number)).on("a", 0).events(events).build()).await,
        );
    }
    for number in [1, 2, 3] {
        assert_eq!(world.tally(tenant(number)).await.count, u64::from(number));
    }
}

/// A refused commit leaves no rows.
pub(crate) async fn projection_rows_vanish_with_a_refused_commit<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    let conflict = command(t).on("b", 0).events(2).on("a", 0).event().build();
    assert!(world.commit_counted(conflict).await.is_err());
    let taken = command(t).on("b", 0).events(2).hold(EMAIL, "x").build();
    assert!(world.commit_counted(taken).await.is_err());
    assert_eq!(world.tally(t).await, Tally::default());
}

/// A projection that fails, at the first event or a later one, undoes the whole command.
pub(crate) async fn projection_failure_undoes_its_command<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for before in [0, 1, 3] {
        let sample = command(t).key("k").on("a", 0).events(before).event_named(DOOMED);
        let outcome = world.commit_counted(sample.event().hold(EMAIL, "x").build()).await;
        assert_named(outcome);
        assert!(world.events(&account(t, "a")).await.is_empty());
        assert_eq!(world.log(t).await, []);
        assert_eq!(world.record(t, "k").await, None);
        assert_eq!(world.tally(t).await, Tally::default(), "rows written before it failed");
    }
    fresh(world.commit_counted(command(t).on("b", 0).event().hold(EMAIL, "x").build()).await);
}

/// Asserts that an error says which projection is broken.
#[track_caller]
fn assert_named(outcome: Result<Committed, StoreError>) {
    match outcome {
        Err(StoreError::Corrupt { what }) => assert!(what.contains("`fragile`"), "{what}"),
        other => panic!("must name the broken projection, but: {other:?}"),
    }
}

/// A projection that fails fails its own command only, whoever commits beside it.
pub(crate) async fn projection_failure_leaves_its_neighbours_alone<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut commits = JoinSet::new();
    for n in 0..40 {
        let world = world.clone();
        commits.spawn(async move {
            let sample = command(t).key(&format!("k{n}")).on(&format!("a{n}"), 0).event();
            let sample = if n % 4 == 0 { sample.event_named(DOOMED) } else { sample };
            (n, world.commit_counted(sample.build()).await)
        });
    }
    for (n, outcome) in commits.join_all().await {
        assert_eq!(outcome.is_err(), n % 4 == 0, "commit {n}: {outcome:?}");
        assert_eq!(world.record(t, &format!("k{n}")).await.is_some(), n % 4 != 0);
    }
    assert_eq!(world.log(t).await.len(), 30);
    assert_eq!(world.tally(t).await.count, 30);
}

/// A projection that panics is an error like another, and the store goes on.
pub(crate) async fn projection_panic_is_an_error<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let panicking = command(t).key("k").on("a", 0).event().event_named(PANICKING).build();
    let outcome = world.commit_counted(panicking.clone()).await;
    assert_named(outcome);
    assert_eq!(world.record(t, "k").await, None);
    assert_eq!(world.tally(t).await, Tally::default());
    let mut transaction = world.begin(t).await;
    assert!(transaction.write(panicking, &world.counting()).await.is_err());
    drop(transaction);
    fresh(world.commit_counted(command(t).key("k").on("a", 0).event().build()).await);
    assert_eq!(world.tally(t).await.count, 1);
}

/// A projection is shown each event as the log will show it, in order.
pub(crate) async fn projection_sees_events_as_they_are_stored<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let watching = Arc::new(Watching::default());
    let projections = world.projections([Arc::clone(&watching) as _]);
    for n in 0..5 {
        let sample = command(t).key(&format!("k{n}")).actor("ada").at(1_700_000_000_123_456);
        let sample = sample.caused_by(7, 8).on("b", n * 2).event().on("a", n).event();
        let commit = sample.back_to(0).event_with(DOOMED, &json(r#"{"n":[1]}"#)).build();
        fresh(world.store.commit(commit, &projections).await);
    }
    let seen = watching.seen();
    assert_eq!(seen.len(), 15);
    assert_eq!(seen, world.log(t).await);
}

/// Several projections see every event; if one fails, the rows of all are gone.
pub(crate) async fn projection_failure_undoes_other_projections<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let counter = || Arc::new(Fragile(Arc::clone(&world.harness))) as _;
    let projections = world.projections([counter(), counter()]);
    fresh(world.store.commit(command(t).on("a", 0).events(2).build(), &projections).await);
    assert_eq!(world.tally(t).await.count, 4);
    let doomed = command(t).on("a", 2).event().event_named(DOOMED).build();
    assert!(world.store.commit(doomed, &projections).await.is_err());
    assert_eq!(world.tally(t).await.count, 4);
}

/// A known key shows nothing to projections.
pub(crate) async fn projection_runs_once_for_a_key<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let commit = command(t).key("k").on("a", 0).events(2).build();
    fresh(world.commit_counted(commit.clone()).await);
    for _ in 0..3 {
        known(world.commit_counted(commit.clone()).await);
    }
    assert_eq!(world.tally(t).await.count, 2);
}

/// Rows written for a transaction are there for its later commands, and go with it.
pub(crate) async fn projection_rows_go_with_the_transaction<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for (commits, count) in [(false, 0), (true, 3)] {
        let mut transaction = world.begin(t).await;
        for n in 0..3 {
            let commit = command(t).on("a", n).event().build();
            transaction.write(commit, &world.counting()).await.unwrap();
        }
        if commits {
            transaction.commit().await.unwrap();
        } else {
            drop(transaction);
        }
        assert_eq!(world.tally(t).await.count, count);
    }
}

/// Rows of many commits at once add up.
pub(crate) async fn projection_rows_add_up_under_load<H: Harness>(world: World<H>) {
    let mut commits = JoinSet::new();
    for n in 0..60_u8 {
        let world = world.clone();
        let commit = command(tenant(1 + n % 3)).on(&format!("a{n}"), 0).events(2).build();
        commits.spawn(async move { fresh(world.commit_counted(commit).await) });
    }
    commits.join_all().await;
    for number in [1, 2, 3] {
        assert_eq!(world.tally(tenant(number)).await, Tally { count: 40, sum: 40 });
    }
}

/// A caller who goes away while a projection works leaves the commit whole or undone.
pub(crate) async fn projection_abandoned_half_way_is_whole_or_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let waiting = Arc::new(Waiting::new());
    let counter = Arc::new(Fragile(Arc::clone(&world.harness))) as _;
    let projections = world.projections([counter, Arc::clone(&waiting) as _]);
    let commit = command(t).key("k").on("a", 0).events(2).build();
    {
        let mut committing = pin!(world.store.commit(commit.clone(), &projections));
        tokio::select! {
            biased;
            _ = waiting.begun.acquire() => {}
            outcome = &mut committing => panic!("did not wait for its projection: {outcome:?}"),
        }
        assert!(poll_once(committing).await.is_none());
    }
    waiting.go_on.add_permits(10);
    let outcome = world.store.commit(commit, &projections).await.unwrap();
    let (Committed::Fresh(record) | Committed::Known(record)) = outcome;
    assert_eq!(world.record(t, "k").await, Some(record));
    assert_eq!(world.version(&account(t, "a")).await, 2);
    assert_eq!(world.tally(t).await.count, 2);
}
