//! A commit becomes true whole, on what it was decided on, or not at all.

use std::pin::pin;

use sequor_core::ports::Committed;
use sequor_core::{Name, StoreError, StreamId, Version};
use tokio::task::JoinSet;

use crate::harness::Harness;
use crate::sample::{account, command, json, tenant};
use crate::world::{World, assert_conflict, poll_once};

/// The record and the events of a command are there together, and tell of each other.
pub(crate) async fn commit_writes_record_events_and_versions_together<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let commit = command(t).key("k").on("a", 0).events(2).build();
    let id = commit.meta.command_id;
    let record = world.fresh(commit).await;
    let events = world.events(&account(t, "a")).await;
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.meta.command_id == id));
    assert_eq!(record.position, Some(events[1].position));
    assert_eq!(world.record(t, "k").await, Some(record));
    assert_eq!(world.log(t).await, events);
}

/// The answer says what was written: id, name, fingerprint, actor, time, versions, output.
pub(crate) async fn commit_answers_with_what_it_wrote<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let sample = command(t).key("k").actor("ada").giving(&json(r#"{"balance":20}"#));
    let commit = sample.on("a", 0).event().on("b", 0).build();
    let record = world.fresh(commit.clone()).await;
    assert_eq!(record.command_id, commit.meta.command_id);
    assert_eq!(record.command_name, commit.name);
    assert_eq!(record.fingerprint, commit.fingerprint);
    assert_eq!(record.actor, commit.meta.actor);
    assert_eq!(record.recorded_at, commit.meta.time);
    assert_eq!(record.output, commit.output);
    let streams = record.streams.iter();
    let streams: Vec<_> = streams.map(|s| (s.stream.clone(), s.version.get())).collect();
    assert_eq!(streams, [(account(t, "a"), 1), (account(t, "b"), 0)]);
}

/// Versions run 1, 2, 3 … over many commits.
pub(crate) async fn commit_numbers_versions_without_holes<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for (expected, events) in [(0, 1), (1, 3), (4, 2), (6, 1)] {
        let commit = command(t).on("a", expected).events(events).build();
        let record = world.fresh(commit).await;
        assert_eq!(record.streams[0].version.get(), expected + events as u64);
    }
    assert_eq!(world.version(&account(t, "a")).await, 7);
}

/// A decision on an old version changes nothing.
pub(crate) async fn commit_refuses_a_stale_version<H: Harness>(world: World<H>) {
    check_refused(world, 1).await;
}

/// A decision on a version that is yet to come changes nothing.
pub(crate) async fn commit_refuses_a_version_ahead_of_the_stream<H: Harness>(world: World<H>) {
    check_refused(world, 5).await;
}

/// A decision on "nothing yet" changes nothing when there is something.
pub(crate) async fn commit_refuses_to_begin_a_stream_twice<H: Harness>(world: World<H>) {
    check_refused(world, 0).await;
}

/// With versions 1..3 stored, a commit on another version writes nothing, and one on 3 does.
async fn check_refused<H: Harness>(world: World<H>, expected: u64) {
    let (t, a) = (tenant(1), account(tenant(1), "a"));
    world.fresh(command(t).on("a", 0).events(3).build()).await;
    let error = world.refused(command(t).key("k").on("a", expected).event().build()).await;
    assert_conflict(&error, &a, expected, 3);
    assert_eq!(world.version(&a).await, 3, "nothing was written");
    assert_eq!(world.log(t).await.len(), 3, "nothing was written");
    assert_eq!(world.record(t, "k").await, None, "nothing was recorded");
    world.fresh(command(t).key("k").on("a", 3).event().build()).await;
    assert_eq!(world.version(&a).await, 4);
}

/// A stream without events has version 0, whatever was expected.
pub(crate) async fn commit_refuses_a_version_of_an_absent_stream<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let error = world.refused(command(t).on("a", 3).event().build()).await;
    assert_conflict(&error, &account(t, "a"), 3, 0);
    assert!(world.events(&account(t, "a")).await.is_empty());
}

/// A command to which nothing happens is a command.
pub(crate) async fn commit_without_events_is_recorded<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let commit = command(t).key("k").giving(&json("7")).on("a", 0).build();
    let record = world.fresh(commit).await;
    assert_eq!(record.position, None, "there is nothing to wait for");
    assert_eq!(record.streams[0].version, Version::NONE);
    assert_eq!(world.record(t, "k").await.as_ref(), Some(&record));
    assert!(world.log(t).await.is_empty());
    let again = world.known(command(t).key("k").on("a", 0).build()).await;
    assert_eq!(again, record);
}

/// A command may touch no aggregate at all.
pub(crate) async fn commit_without_streams_is_recorded<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let record = world.fresh(command(t).key("k").build()).await;
    assert!(record.streams.is_empty());
    assert_eq!(world.record(t, "k").await, Some(record));
}

/// A decision for "no event" holds only on the version that it was made on.
pub(crate) async fn commit_without_events_is_guarded_by_its_version<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(2).build()).await;
    let error = world.refused(command(t).key("k").on("a", 1).build()).await;
    assert_conflict(&error, &account(t, "a"), 1, 2);
    assert_eq!(world.record(t, "k").await, None);
}

/// Events of several aggregates keep the order in which they happened.
pub(crate) async fn commit_spans_streams_in_the_order_of_events<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let sample = command(t).on("z", 0).event().on("a", 0).event();
    let commit = sample.back_to(0).event().back_to(1).event().event().build();
    let record = world.fresh(commit).await;
    let log = world.log(t).await;
    let places = log.iter().map(|event| (event.stream.id.as_str(), event.version.get()));
    let places: Vec<_> = places.collect();
    assert_eq!(places, [("z", 1), ("a", 1), ("z", 2), ("a", 2), ("a", 3)]);
    assert_eq!(record.position, log.last().map(|event| event.position));
    assert_eq!(world.version(&account(t, "a")).await, 3);
    assert_eq!(world.version(&account(t, "z")).await, 2);
}

/// One aggregate that has moved on stops the whole commit.
pub(crate) async fn commit_refused_for_one_stream_writes_none<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("m", 0).event().build()).await;
    for stale in ["a", "m", "z"] {
        let expected = |id| u64::from((id == "m") != (id == stale));
        let sample = ["a", "m", "z"].into_iter();
        let sample = sample.fold(command(t), |sample, id| sample.on(id, expected(id)).event());
        let error = world.refused(sample.build()).await;
        assert_conflict(&error, &account(t, stale), expected(stale), 1 - expected(stale));
        assert_eq!(world.log(t).await.len(), 1, "nothing was written");
    }
}

/// An aggregate that was only read must not have changed either.
pub(crate) async fn commit_guards_what_it_only_read<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("limit", 0).event().build()).await;
    world.fresh(command(t).on("limit", 1).event().build()).await;
    let stale = command(t).key("k").on("a", 0).event().on("limit", 1).build();
    let error = world.refused(stale).await;
    assert_conflict(&error, &account(t, "limit"), 1, 2);
    assert!(world.events(&account(t, "a")).await.is_empty());
    assert_eq!(world.record(t, "k").await, None);
}

/// A guard takes no version of its own.
pub(crate) async fn commit_leaves_guards_as_they_are<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("limit", 0).events(2).build()).await;
    for id in ["a", "b"] {
        let record = world.fresh(command(t).on(id, 0).event().on("limit", 2).build()).await;
        assert_eq!(record.streams[1].version.get(), 2);
    }
    assert_eq!(world.version(&account(t, "limit")).await, 2);
}

/// Of two commands that each read what the other writes, one must decide again.
pub(crate) async fn commit_refuses_one_side_of_a_write_skew<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("ann", 0).event().on("bob", 0).event().build()).await;
    let first = command(t).on("ann", 1).event().on("bob", 1).build();
    let second = command(t).on("ann", 1).on("bob", 1).event().build();
    let (first, second) = tokio::join!(world.commit(first), world.commit(second));
    let won = usize::from(first.is_ok()) + usize::from(second.is_ok());
    assert_eq!(won, 1, "exactly one: {first:?} {second:?}");
    assert_eq!(world.log(t).await.len(), 3);
}

/// Aggregates of another kind with the same id are other aggregates.
pub(crate) async fn commit_tells_kinds_of_aggregates_apart<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let other = StreamId { aggregate: Name::new("order").unwrap(), ..account(t, "a") };
    world.fresh(command(t).on("a", 0).events(2).build()).await;
    world.fresh(command(t).on_stream(other.clone(), 0).event().build()).await;
    assert_eq!(world.version(&account(t, "a")).await, 2);
    assert_eq!(world.version(&other).await, 1);
}

/// What 20 parallel appends report is what is stored.
pub(crate) async fn commit_lets_as_many_appends_win_as_it_stores<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut appends = JoinSet::new();
    for _ in 0..20 {
        let world = world.clone();
        appends.spawn(async move { world.commit(command(t).on("a", 0).event().build()).await });
    }
    let outcomes = appends.join_all().await;
    let won = outcomes.iter().filter(|one| one.is_ok()).count();
    assert_eq!(won, 1, "all expected an empty stream");
    for error in outcomes.iter().filter_map(|one| one.as_ref().err()) {
        assert_conflict(error, &account(t, "a"), 0, 1);
    }
    assert_eq!(world.version(&account(t, "a")).await, 1);
}

/// 50 increments from 10 tasks that decide again after conflicts make version 50.
pub(crate) async fn commit_decided_again_loses_no_increment<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let world = world.clone();
        tasks.spawn(async move {
            for _ in 0..5 {
                increment(&world).await;
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(world.version(&account(t, "a")).await, 50);
}

async fn increment<H: Harness>(world: &World<H>) {
    let t = tenant(1);
    loop {
        let version = world.version(&account(t, "a")).await;
        match world.commit(command(t).on("a", version).event().build()).await {
            Ok(Committed::Fresh(_)) => return,
            Err(StoreError::Conflict { .. }) => {}
            other => panic!("neither done nor a conflict: {other:?}"),
        }
    }
}

/// A thousand events of one command.
pub(crate) async fn commit_takes_a_thousand_events<H: Harness>(world: World<H>) {
    check_count(world, 1_000).await;
}

/// Five thousand events of one command: more than any statement takes parameters one by one.
pub(crate) async fn commit_takes_five_thousand_events<H: Harness>(world: World<H>) {
    check_count(world, 5_000).await;
}

async fn check_count<H: Harness>(world: World<H>, count: usize) {
    let t = tenant(1);
    let numbered = |sample: crate::sample::Sample, number: usize| {
        sample.event_with(crate::sample::DEPOSITED, &json(&number.to_string()))
    };
    let commit = (1..=count).fold(command(t).on("a", 0), numbered).build();
    let record = world.fresh(commit).await;
    assert_eq!(record.streams[0].version.get(), count as u64);
    let events = world.events(&account(t, "a")).await;
    assert_eq!(events.len(), count);
    for (event, number) in events.iter().zip(1..) {
        assert_eq!(event.payload.read::<u64>().unwrap(), number);
    }
    assert!(events.is_sorted_by(|one, two| one.position < two.position));
    assert_eq!(world.log(t).await, events);
}

/// As many aggregates as a commit may have.
pub(crate) async fn commit_takes_a_thousand_streams<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let sample = (0..1_000).fold(command(t), |sample, n| sample.on(&format!("a{n}"), 0).event());
    let record = world.fresh(sample.build()).await;
    assert_eq!(record.streams.len(), 1_000);
    assert_eq!(world.log(t).await.len(), 1_000);
    assert_eq!(world.version(&account(t, "a999")).await, 1);
}

/// Positions follow the order of commits, and that of versions within a stream.
pub(crate) async fn commit_positions_follow_commits_and_versions<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut last = None;
    for n in 0..10 {
        let commit = command(t).on("a", n).event().on(&format!("b{n}"), 0).event().build();
        let record = world.fresh(commit).await;
        assert!(record.position > last, "{:?} after {last:?}", record.position);
        last = record.position;
    }
    let events = world.events(&account(t, "a")).await;
    assert!(events.is_sorted_by(|one, two| one.position < two.position));
}

/// Of many commits at once each fails or succeeds alone.
pub(crate) async fn commit_fails_only_itself_among_many<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("moved", 0).event().build()).await;
    let mut commits = JoinSet::new();
    for n in 0..60 {
        let world = world.clone();
        commits.spawn(async move {
            let doomed = n % 3 == 0;
            let sample = command(t).key(&format!("k{n}")).on(&format!("a{n}"), 0).event();
            let sample = if doomed { sample.on("moved", 0) } else { sample };
            (n, doomed, world.commit(sample.build()).await)
        });
    }
    for (n, doomed, outcome) in commits.join_all().await {
        assert_eq!(outcome.is_err(), doomed, "commit {n}: {outcome:?}");
        if let Err(error) = outcome {
            assert_conflict(&error, &account(t, "moved"), 0, 1);
        }
        let recorded = world.record(t, &format!("k{n}")).await.is_some();
        let version = world.version(&account(t, &format!("a{n}"))).await;
        assert_eq!((recorded, version), (!doomed, u64::from(!doomed)), "commit {n}");
    }
}

/// A caller who goes away leaves the commit whole or undone, and the key tells which.
pub(crate) async fn commit_dropped_after_its_first_poll_is_whole_or_nothing<H: Harness>(
    world: World<H>,
) {
    let t = tenant(1);
    for n in 0..20 {
        let (key, id) = (format!("k{n}"), format!("a{n}"));
        let commit = command(t).key(&key).on(&id, 0).events(2).on("log", n).event().build();
        {
            let counting = world.counting();
            let committing = pin!(sequor_core::ports::CommitCommand::commit(
                &*world.store,
                commit.clone(),
                &counting
            ));
            drop(poll_once(committing).await);
        }
        let record = settled(&world, commit).await;
        assert_eq!(world.record(t, &key).await, Some(record));
        assert_eq!(world.version(&account(t, &id)).await, 2);
        assert_eq!(world.tally(t).await.count, 3 * (n + 1));
    }
}

/// The same commit again runs if the first one did not, and is answered if it did.
async fn settled<H: Harness>(world: &World<H>, commit: sequor_core::Commit) -> sequor_core::Record {
    match world.commit_counted(commit).await.unwrap() {
        Committed::Fresh(record) | Committed::Known(record) => record,
    }
}
