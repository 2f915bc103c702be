//! A value of a tenant is held by one aggregate at a time.

use sequor_core::StoreError;
use tokio::task::JoinSet;

use crate::harness::Harness;
use crate::sample::{EMAIL, NUMBER, account, command, tenant};
use crate::world::{World, assert_taken};

/// Asserts who holds an e-mail address: anybody else is told.
async fn assert_held<H: Harness>(world: &World<H>, value: &str, holder: &str) {
    let t = tenant(1);
    let error =
        world.refused(command(t).on("stranger", 0).event().hold(EMAIL, value).build()).await;
    assert_taken(&error, &account(t, holder), EMAIL, value);
}

/// Asserts that nobody holds an e-mail address: somebody takes it and lets go.
async fn assert_free<H: Harness>(world: &World<H>, value: &str) {
    let t = tenant(1);
    world.fresh(command(t).on("anybody", 0).hold(EMAIL, value).build()).await;
    world.fresh(command(t).on("anybody", 0).release(EMAIL).build()).await;
}

/// Who claims what another holds is told the scope, the value and the holder.
pub(crate) async fn unique_clash_names_scope_value_and_holder<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "ann@x.org").build()).await;
    assert_held(&world, "ann@x.org", "a").await;
}

/// A clash writes nothing of the command.
pub(crate) async fn unique_clash_writes_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    let sample = command(t).key("k").on("b", 0).event().hold(NUMBER, "7").hold(EMAIL, "x");
    world.refused(sample.build()).await;
    assert!(world.events(&account(t, "b")).await.is_empty());
    assert_eq!(world.record(t, "k").await, None);
    world.fresh(command(t).on("c", 0).hold(NUMBER, "7").build()).await;
}

/// A new value in a scope frees the old one.
pub(crate) async fn unique_value_is_replaced_by_the_next<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "old").build()).await;
    world.fresh(command(t).on("a", 1).event().hold(EMAIL, "new").build()).await;
    assert_free(&world, "old").await;
    assert_held(&world, "new", "a").await;
}

/// Of several changes in one commit the last counts.
pub(crate) async fn unique_changes_of_one_commit_follow_each_other<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let sample = command(t).on("a", 0).event().hold(EMAIL, "x").release(EMAIL);
    world.fresh(sample.hold(EMAIL, "y").hold(EMAIL, "z").build()).await;
    assert_free(&world, "x").await;
    assert_free(&world, "y").await;
    assert_held(&world, "z", "a").await;
    world.fresh(command(t).on("a", 1).release_all().hold(EMAIL, "z").build()).await;
    assert_held(&world, "z", "a").await;
}

/// A released value is free, and the aggregate's other values are not.
pub(crate) async fn unique_value_is_freed_by_its_release<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").hold(NUMBER, "7").build()).await;
    world.fresh(command(t).on("a", 1).event().release(EMAIL).build()).await;
    assert_free(&world, "x").await;
    let error = world.refused(command(t).on("b", 0).hold(NUMBER, "7").build()).await;
    assert_taken(&error, &account(t, "a"), NUMBER, "7");
}

/// Releasing what is not held changes nothing.
pub(crate) async fn unique_release_of_nothing_is_harmless<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    world.fresh(command(t).on("b", 0).event().release(EMAIL).build()).await;
    world.fresh(command(t).on("b", 1).event().release_all().build()).await;
    assert_held(&world, "x", "a").await;
}

/// An aggregate that ends frees all it held.
pub(crate) async fn unique_values_are_freed_when_their_holder_ends<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").hold(NUMBER, "7").build()).await;
    world.fresh(command(t).on("a", 1).event().release_all().build()).await;
    world.fresh(command(t).on("b", 0).hold(EMAIL, "x").hold(NUMBER, "7").build()).await;
    assert_held(&world, "x", "b").await;
}

/// Two aggregates swap their values in one commit, whichever comes first.
pub(crate) async fn unique_values_swap_in_one_commit<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let both = command(t).on("a", 0).hold(EMAIL, "x").on("b", 0).hold(EMAIL, "y");
    world.fresh(both.build()).await;
    world.fresh(command(t).on("a", 0).hold(EMAIL, "y").on("b", 0).hold(EMAIL, "x").build()).await;
    assert_held(&world, "y", "a").await;
    assert_held(&world, "x", "b").await;
    world.fresh(command(t).on("b", 0).hold(EMAIL, "y").on("a", 0).hold(EMAIL, "x").build()).await;
    assert_held(&world, "x", "a").await;
    assert_held(&world, "y", "b").await;
}

/// Three aggregates pass their values round in one commit.
pub(crate) async fn unique_values_go_round_in_one_commit<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let all = |of_a: &str, of_b: &str, of_c: &str| {
        let sample = command(t).on("a", 0).hold(EMAIL, of_a).on("b", 0).hold(EMAIL, of_b);
        sample.on("c", 0).hold(EMAIL, of_c).build()
    };
    world.fresh(all("1", "2", "3")).await;
    world.fresh(all("2", "3", "1")).await;
    assert_held(&world, "1", "c").await;
    assert_held(&world, "2", "a").await;
    assert_held(&world, "3", "b").await;
}

/// One aggregate lets go of what another takes in the same commit, whichever comes first.
pub(crate) async fn unique_value_is_handed_over_in_one_commit<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).hold(EMAIL, "x").build()).await;
    world.fresh(command(t).on("a", 0).release(EMAIL).on("b", 0).hold(EMAIL, "x").build()).await;
    assert_held(&world, "x", "b").await;
    world.fresh(command(t).on("a", 0).hold(EMAIL, "x").on("b", 0).release_all().build()).await;
    assert_held(&world, "x", "a").await;
}

/// Two aggregates of one commit cannot both have a value.
pub(crate) async fn unique_value_has_no_two_claimants_in_one_commit<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let both = command(t).key("k").on("a", 0).event().hold(EMAIL, "x");
    let error = world.refused(both.on("b", 0).event().hold(EMAIL, "x").build()).await;
    let StoreError::UniqueTaken { scope, value, holder } = error else {
        panic!("must be a taken value, but: {error:?}");
    };
    assert_eq!((scope.as_str(), value.as_str()), (EMAIL, "x"));
    assert_eq!(holder.tenant, t);
    assert_eq!(world.log(t).await, []);
    assert_eq!(world.record(t, "k").await, None);
    assert_free(&world, "x").await;
}

/// Holding what one holds already is no clash.
pub(crate) async fn unique_value_may_be_kept<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for expected in 0..3 {
        world.fresh(command(t).on("a", expected).event().hold(EMAIL, "x").build()).await;
    }
    assert_held(&world, "x", "a").await;
}

/// Commands that do not mention a value leave it where it is.
pub(crate) async fn unique_value_is_kept_by_other_commands<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    world.fresh(command(t).on("a", 1).event().hold(NUMBER, "7").build()).await;
    world.fresh(command(t).on("a", 2).event().build()).await;
    assert_held(&world, "x", "a").await;
}

/// One text in two scopes is two values.
pub(crate) async fn unique_scopes_are_independent<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).hold(EMAIL, "7").build()).await;
    world.fresh(command(t).on("b", 0).hold(NUMBER, "7").build()).await;
    assert_held(&world, "7", "a").await;
}

/// Values are compared byte for byte.
pub(crate) async fn unique_values_are_compared_byte_for_byte<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let alike = ["x", "X", "x ", " x", "é", "e\u{301}", "1", "01", "1.0"];
    for (n, value) in alike.into_iter().enumerate() {
        world.fresh(command(t).on(&format!("a{n}"), 0).hold(EMAIL, value).build()).await;
    }
    for (n, value) in alike.into_iter().enumerate() {
        assert_held(&world, value, &format!("a{n}")).await;
    }
}

/// What a rolled-back transaction let go of is still held.
pub(crate) async fn unique_value_released_in_vain_is_still_held<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().hold(EMAIL, "x").build()).await;
    let mut transaction = world.begin(t).await;
    let release = command(t).on("a", 1).event().release(EMAIL).build();
    world.write(&mut transaction, release).await.unwrap();
    let take = command(t).on("b", 0).event().hold(EMAIL, "x").build();
    world.write(&mut transaction, take).await.unwrap();
    drop(transaction);
    assert_held(&world, "x", "a").await;
}

/// Of 20 that want a value at once one gets it, and the others are told who.
pub(crate) async fn unique_value_raced_for_goes_to_one<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut racers = JoinSet::new();
    for n in 0..20 {
        let world = world.clone();
        let id = format!("a{n}");
        racers.spawn(async move {
            let commit = command(t).on(&id, 0).event().hold(EMAIL, "x").build();
            (id, world.commit(commit).await)
        });
    }
    let outcomes = racers.join_all().await;
    let winners: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
    assert_eq!(winners.len(), 1, "exactly one: {outcomes:?}");
    let winner = account(t, &winners[0].0);
    for (_, outcome) in &outcomes {
        if let Err(error) = outcome {
            assert_taken(error, &winner, EMAIL, "x");
        }
    }
    assert_eq!(world.log(t).await.len(), 1);
}
