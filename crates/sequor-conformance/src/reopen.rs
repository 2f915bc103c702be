//! What a store keeps while it is closed.

use sequor_core::ports::Store;

use crate::harness::Harness;
use crate::sample::{EMAIL, account, command, json, tenant};
use crate::world::{World, assert_conflict, assert_taken, fresh};

/// Keys answer with the same record.
pub(crate) async fn reopen_keeps_keys<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let commit = command(t).key("k").actor("ada").giving(&json(r#"{"n":1}"#)).on("a", 0).event();
    let commit = commit.build();
    let record = world.fresh(commit.clone()).await;
    let world = world.reopened().await;
    assert_eq!(world.record(t, "k").await.as_ref(), Some(&record));
    assert_eq!(world.known(commit).await, record);
}

/// Streams and the log are as they were, and versions go on.
pub(crate) async fn reopen_keeps_events<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(3).on("b", 0).event().build()).await;
    let (events, log) = (world.events(&account(t, "a")).await, world.log(t).await);
    let world = world.reopened().await;
    assert_eq!(world.events(&account(t, "a")).await, events);
    assert_eq!(world.log(t).await, log);
    let stale = world.refused(command(t).on("a", 2).event().build()).await;
    assert_conflict(&stale, &account(t, "a"), 2, 3);
    world.fresh(command(t).on("a", 3).event().build()).await;
    assert_eq!(world.version(&account(t, "a")).await, 4);
}

/// Positions go on growing.
pub(crate) async fn reopen_keeps_positions_growing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let before = world.fresh(command(t).on("a", 0).events(3).build()).await;
    let world = world.reopened().await;
    let after = world.fresh(command(t).on("a", 3).event().build()).await;
    assert!(after.position > before.position);
}

/// It is the same store.
pub(crate) async fn reopen_keeps_the_epoch<H: Harness>(world: World<H>) {
    let epoch = world.store.epoch();
    let world = world.reopened().await;
    assert_eq!(world.store.epoch(), epoch);
}

/// Values are held and free as they were.
pub(crate) async fn reopen_keeps_unique_values<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    world.fresh(command(t).on("b", 0).event().hold(EMAIL, "y").build()).await;
    world.fresh(command(t).on("b", 1).event().release(EMAIL).build()).await;
    let world = world.reopened().await;
    let error = world.refused(command(t).on("c", 0).hold(EMAIL, "x").build()).await;
    assert_taken(&error, &account(t, "a"), EMAIL, "x");
    world.fresh(command(t).on("c", 0).hold(EMAIL, "y").build()).await;
}

/// Rows of projections are as they were.
pub(crate) async fn reopen_keeps_rows_of_projections<H: Harness>(world: World<H>) {
    let t = tenant(1);
    fresh(world.commit_counted(command(t).on("a", 0).events(2).build()).await);
    let world = world.reopened().await;
    fresh(world.commit_counted(command(t).on("a", 2).event().build()).await);
    assert_eq!(world.tally(t).await.count, 3);
}

/// What was open when the store closed never happened.
pub(crate) async fn reopen_forgets_what_was_not_committed<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut transaction = world.begin(t).await;
    let commit = command(t).key("k").on("a", 0).event().hold(EMAIL, "x").build();
    world.write(&mut transaction, commit.clone()).await.unwrap();
    drop(transaction);
    let world = world.reopened().await;
    assert_eq!(world.log(t).await, []);
    world.fresh(commit).await;
}
