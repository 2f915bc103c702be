//! Tenants share a store and nothing else.

use sequor_core::ports::{Committed, HistoryRequest, ReadHistory};
use sequor_core::{IdempotencyKey, Invalid, StoreError, StreamId, Version};
use tokio::task::JoinSet;

use crate::harness::Harness;
use crate::sample::{EMAIL, account, command, json, tenant};
use crate::world::{World, assert_taken};

/// One key of two tenants is two keys.
pub(crate) async fn tenant_keys_are_independent<H: Harness>(world: World<H>) {
    let mine = world.fresh(command(tenant(1)).key("k").giving(&json("1")).build()).await;
    assert_eq!(world.record(tenant(2), "k").await, None, "nothing leaks");
    let theirs = world.fresh(command(tenant(2)).key("k").giving(&json("2")).build()).await;
    assert_eq!(world.record(tenant(1), "k").await, Some(mine));
    assert_eq!(world.record(tenant(2), "k").await, Some(theirs));
}

/// One aggregate id of two tenants is two aggregates.
pub(crate) async fn tenant_streams_are_independent<H: Harness>(world: World<H>) {
    world.fresh(command(tenant(1)).on("a", 0).events(3).build()).await;
    assert!(world.events(&account(tenant(2), "a")).await.is_empty());
    world.fresh(command(tenant(2)).on("a", 0).event().build()).await;
    assert_eq!(world.version(&account(tenant(1), "a")).await, 3);
    assert_eq!(world.version(&account(tenant(2), "a")).await, 1);
}

/// One value of two tenants is two values.
pub(crate) async fn tenant_unique_values_are_independent<H: Harness>(world: World<H>) {
    for number in [1, 2] {
        let t = tenant(number);
        world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    }
    for number in [1, 2] {
        let t = tenant(number);
        let error = world.refused(command(t).on("b", 0).hold(EMAIL, "x").build()).await;
        assert_taken(&error, &account(t, "a"), EMAIL, "x");
    }
    let t = tenant(1);
    world.fresh(command(t).on("a", 1).release(EMAIL).build()).await;
    let error = world.refused(command(tenant(2)).on("b", 0).hold(EMAIL, "x").build()).await;
    assert_taken(&error, &account(tenant(2), "a"), EMAIL, "x");
}

/// A reader never sees another tenant's record or events, whatever it asks for.
pub(crate) async fn tenant_sees_nothing_of_another<H: Harness>(world: World<H>) {
    world.fresh(command(tenant(2)).key("k").on("a", 0).events(2).build()).await;
    let key: IdempotencyKey = "k".parse().unwrap();
    let ask = async |stream: &StreamId| {
        let stream = Some((stream, Version::NONE));
        world.store.history(HistoryRequest { tenant: tenant(1), key: Some(&key), stream }).await
    };
    let history = ask(&account(tenant(1), "a")).await.unwrap();
    assert_eq!(history.record, None);
    assert_eq!(history.events, []);
    let refused = ask(&account(tenant(2), "a")).await;
    assert!(matches!(refused, Err(StoreError::Invalid(Invalid::TenantsDiffer))), "{refused:?}");
}

/// One key raced by two tenants runs once for each.
pub(crate) async fn tenant_race_on_one_key_runs_once_each<H: Harness>(world: World<H>) {
    let mut racers = JoinSet::new();
    for n in 0..40 {
        let world = world.clone();
        let t = tenant(1 + n % 2);
        let commit = command(t).key("k").on(&format!("a{n}"), 0).event().build();
        racers.spawn(async move { (t, world.commit_counted(commit).await.unwrap()) });
    }
    let outcomes = racers.join_all().await;
    for t in [tenant(1), tenant(2)] {
        let ran = |(of, outcome): &&_| *of == t && matches!(outcome, Committed::Fresh(_));
        assert_eq!(outcomes.iter().filter(ran).count(), 1);
        assert_eq!(world.tally(t).await.count, 1);
    }
}
