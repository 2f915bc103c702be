//! A commit has its place once it was submitted, and may be decided on what those before it have
//! yet to make true.

use std::pin::pin;

use sequor_core::ports::{CommitCommand, Committed, Submitted};
use sequor_core::{CommandId, Commit, StoreError};

use crate::harness::Harness;
use crate::sample::{DOOMED, EMAIL, account, command, tenant};
use crate::world::{World, assert_conflict, assert_taken, fresh, known, poll_once};

/// Each is decided on the version that the one before it makes: all become true, in order,
/// whoever asks for his answer first.
pub(crate) async fn submit_in_order_becomes_true_in_order<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let (mut chain, mut submitted) = (Chain::default(), Vec::new());
    for n in 0..30 {
        let commit = chain.next(command(t).key(&format!("k{n}")), "a").event().build();
        submitted.push(submit(&world, chain.linked(commit)).await);
    }
    let mut records = Vec::new();
    for answer in submitted.into_iter().rev() {
        records.push(fresh(answer.await));
    }
    records.reverse();
    assert!(records.is_sorted_by(|one, two| one.position < two.position));
    let versions = records.iter().map(|record| record.streams[0].version.get());
    assert_eq!(versions.collect::<Vec<_>>(), (1..=30).collect::<Vec<_>>());
    assert_eq!(world.version(&account(t, "a")).await, 30);
    assert_eq!(world.tally(t).await.count, 30);
}

/// The first is refused: those decided on it are conflicts, and nothing of them is written.
pub(crate) async fn submit_chain_falls_with_its_first_link<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("held", 0).hold(EMAIL, "x").build()).await;
    let mut chain = Chain::default();
    let doomed = chain.next(command(t).key("k0"), "a").event().hold(EMAIL, "x").build();
    let mut submitted = vec![submit(&world, chain.linked(doomed)).await];
    for n in 1..10 {
        let commit = chain.next(command(t).key(&format!("k{n}")), "a").event().build();
        submitted.push(submit(&world, chain.linked(commit)).await);
    }
    let answers = answers(submitted).await;
    assert_taken(answers[0].as_ref().unwrap_err(), &account(t, "held"), EMAIL, "x");
    for (answer, expected) in answers[1..].iter().zip(1..) {
        assert_conflict(answer.as_ref().unwrap_err(), &account(t, "a"), expected, 0);
    }
    assert_nothing_of(&world, 10).await;
    world.fresh(command(t).key("k5").on("a", 0).event().build()).await;
}

/// A link whose projection fails, or whose key is known, takes with it those decided on it.
pub(crate) async fn submit_chain_falls_with_any_link<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let first = world.fresh(command(t).key("known").on("other", 0).event().build()).await;
    for (id, key, event) in [("a", "fresh", DOOMED), ("b", "known", crate::sample::DEPOSITED)] {
        let mut chain = Chain::default();
        let whole = chain.next(command(t), id).event().build();
        let whole = submit(&world, chain.linked(whole)).await;
        let fallen = chain.next(command(t).key(key), id).event_named(event).build();
        let fallen = submit(&world, chain.linked(fallen)).await;
        let follower = chain.next(command(t), id).event().build();
        let follower = submit(&world, chain.linked(follower)).await;
        fresh(whole.await);
        match key {
            "known" => assert_eq!(known(fallen.await), first),
            _ => assert!(matches!(fallen.await, Err(StoreError::Corrupt { .. }))),
        }
        assert_conflict(&follower.await.unwrap_err(), &account(t, id), 2, 1);
        assert_eq!(world.version(&account(t, id)).await, 1);
    }
}

/// Somebody else has made the awaited version: the number is right, and the decision was made on
/// something else.
pub(crate) async fn submit_refuses_a_version_of_another_maker<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let stranger = command(t).on("a", 0).event().build();
    let maker = stranger.meta.command_id;
    world.fresh(stranger).await;
    let mut chain = Chain::default();
    let stale = chain.next(command(t), "a").event().build();
    let stale = submit(&world, chain.linked(stale)).await;
    let follower = chain.next(command(t).key("k"), "a").event().build();
    let follower = submit(&world, chain.linked(follower)).await;
    assert_conflict(&stale.await.unwrap_err(), &account(t, "a"), 0, 1);
    assert_conflict(&follower.await.unwrap_err(), &account(t, "a"), 1, 1);
    assert_eq!(world.record(t, "k").await, None);
    let mut right = command(t).key("k").on("a", 1).event().build();
    right.streams[0].after = Some(maker);
    world.fresh(right).await;
    assert_eq!(world.version(&account(t, "a")).await, 2);
}

/// A chain may lead from one stream to another, and falls there too.
pub(crate) async fn submit_chain_spans_streams<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for (falls, ids) in [(false, ["a", "b"]), (true, ["c", "d"])] {
        let [one, two] = ids;
        let only_one = command(t).on(one, u64::from(falls)).event().build();
        let both = command(t).on(one, 1).event().on(two, 0).event().build();
        let both = after(both, one, only_one.meta.command_id);
        let only_two = command(t).on(two, 1).event().build();
        let only_two = after(only_two, two, both.meta.command_id);
        let mut submitted = Vec::new();
        for commit in [only_one, both, only_two] {
            submitted.push(submit(&world, commit).await);
        }
        for answer in answers(submitted).await {
            assert_eq!(matches!(answer, Err(StoreError::Conflict { .. })), falls, "{answer:?}");
        }
        let versions =
            [world.version(&account(t, one)).await, world.version(&account(t, two)).await];
        assert_eq!(versions, if falls { [0, 0] } else { [2, 2] });
    }
}

/// Who drops a submitted commit changes nothing: it is whole or undone, and the next one is judged
/// on what it left.
pub(crate) async fn submit_dropped_is_whole_or_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for n in 0..20 {
        let (key, id) = (format!("k{n}"), format!("a{n}"));
        let commit = command(t).key(&key).on(&id, 0).events(2).on("log", n).event().build();
        let mut dropped = submit(&world, commit.clone()).await;
        if n % 2 == 0 {
            drop(poll_once(pin!(&mut dropped)).await);
        }
        drop(dropped);
        let (Committed::Fresh(record) | Committed::Known(record)) =
            world.commit_counted(commit).await.unwrap();
        assert_eq!(world.record(t, &key).await, Some(record));
        assert_eq!(world.version(&account(t, &id)).await, 2);
        assert_eq!(world.tally(t).await.count, 3 * (n + 1));
    }
}

/// A chain on one stream from its beginning: each link is decided on what the one before makes.
#[derive(Default)]
struct Chain {
    length: u64,
    last: Option<CommandId>,
}

impl Chain {
    /// Lets a command go on from the end of the chain.
    fn next(&self, sample: crate::sample::Sample, id: &str) -> crate::sample::Sample {
        sample.on(id, self.length)
    }

    /// Makes a commit of one event the end of the chain.
    fn linked(&mut self, mut commit: Commit) -> Commit {
        commit.streams[0].after = self.last.replace(commit.meta.command_id);
        self.length += 1;
        commit
    }
}

/// Says who must have made the version of a stream.
fn after(mut commit: Commit, id: &str, maker: CommandId) -> Commit {
    let mut writes = commit.streams.iter_mut();
    writes.find(|write| write.stream.id.as_str() == id).unwrap().after = Some(maker);
    commit
}

/// Submits with the counting projection.
async fn submit<H: Harness>(world: &World<H>, commit: Commit) -> Submitted {
    world.store.submit(commit, &world.counting()).await.unwrap()
}

async fn answers(submitted: Vec<Submitted>) -> Vec<Result<Committed, StoreError>> {
    let mut answers = Vec::new();
    for one in submitted {
        answers.push(one.await);
    }
    answers
}

async fn assert_nothing_of<H: Harness>(world: &World<H>, links: usize) {
    let t = tenant(1);
    for n in 0..links {
        assert_eq!(world.record(t, &format!("k{n}")).await, None);
    }
    assert_eq!(world.log(t).await, []);
    assert_eq!(world.tally(t).await.count, 0);
}
