//! Random histories: every answer of a store against a model, and what must hold whatever the
//! order of things was.
//!
//! A failing history prints the one command that replays it. `SEQUOR_SEED` runs one seed,
//! `SEQUOR_SLOW=1` many more than by default.

mod model;
mod random;

use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use sequor_core::ports::{Committed, Store, Transaction};
use sequor_core::{CommandId, Commit, Position, Record, StreamId, TenantId};
use tokio::task::JoinSet;

use crate::behaviours::is_slow;
use crate::harness::Harness;
use crate::log::assert_versions_follow;
use crate::sample::{command, tenant};
use crate::world::World;
use model::{Expected, Happened, Model, assert_same};
use random::Random;

/// Steps of one history.
const STEPS: u64 = 150;
/// Tasks of a concurrent history.
const TASKS: u64 = 8;
/// Steps of each task.
const STEPS_OF_TASK: u64 = 30;

/// Says how to replay a history, if it fails.
struct Replay {
    seed: u64,
    test: &'static str,
}

impl Drop for Replay {
    #[expect(clippy::print_stderr, reason = "whoever sees the failure needs the seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "…".to_owned());
            let Self { seed, test } = self;
            eprintln!("replay with: SEQUOR_SEED={seed} cargo test -p {package} {test}");
        }
    }
}

fn seeds() -> Vec<u64> {
    if let Ok(seed) = std::env::var("SEQUOR_SEED") {
        return vec![seed.parse().expect("SEQUOR_SEED is a number")];
    }
    (1..=if is_slow() { 200 } else { 8 }).collect()
}

/// Whatever happens, one by one, a store answers as the model does, and ends up with its content.
pub(crate) async fn oracle_agrees_with_the_model<H: Harness>(world: World<H>) {
    let mut answered = HashSet::new();
    let seeds = seeds();
    for seed in seeds.iter().copied() {
        let _replay = Replay { seed, test: "oracle_agrees_with_the_model" };
        let world = World::new(Arc::clone(&world.harness)).await;
        let (mut random, mut model) = (Random::new(seed), Model::default());
        let mut last = Position::START;
        for _ in 0..STEPS {
            if random.happens(25) {
                step_transaction(&world, &mut random, &mut model).await;
            } else {
                answered.insert(step_commit(&world, &mut random, &mut model).await);
            }
            last = assert_positions_grow(&model, last);
        }
        assert_content(&world, &model).await;
        assert_holders(&world, &model).await;
        world.assert_clean().await;
    }
    assert!(seeds.len() == 1 || answered.len() == 4, "every kind of answer came up: {answered:?}");
}

/// A command that is decided on the model's versions.
async fn draw(random: &mut Random, of: TenantId, model: &Model) -> Commit {
    random::commit(random, of, |stream| std::future::ready(model.version(&stream))).await
}

/// Gives the kind of the answer.
async fn step_commit<H: Harness>(
    world: &World<H>,
    random: &mut Random,
    model: &mut Model,
) -> Discriminant<Expected> {
    let of = random.tenant();
    let commit = draw(random, of, model).await;
    let expected = model.expect(&commit);
    let answer = match random.happens(50) {
        true => world.commit_counted(commit.clone()).await,
        false => world.commit(commit.clone()).await,
    };
    if let Some(record) = expected.assert_is(answer) {
        model.apply(&commit, record);
    }
    discriminant(&expected)
}

async fn step_transaction<H: Harness>(world: &World<H>, random: &mut Random, model: &mut Model) {
    let of = random.tenant();
    let (mut own, mut written) = (model.clone(), Vec::new());
    let mut transaction = world.begin(of).await;
    for _ in 0..=random.below(4) {
        let commit = draw(random, of, &own).await;
        let expected = own.expect(&commit);
        let claimed = match &commit.meta.key {
            Some(key) => transaction.claim(of, key).await.unwrap(),
            None => None,
        };
        if let Expected::Known(known) = &expected {
            assert_same(&claimed.expect("the record of a known key"), known);
            continue;
        }
        assert_eq!(claimed, None);
        match world.write(&mut transaction, commit.clone()).await {
            Ok(()) => {
                let Expected::Fresh(record) = expected else {
                    panic!("written, but expected {expected:?}");
                };
                own.apply(&commit, record);
                written.push(commit);
            }
            Err(error) => return expected.assert_refused(error),
        }
    }
    if random.happens(70) {
        let records = transaction.commit().await.unwrap();
        assert_eq!(records.len(), written.len());
        for (commit, record) in written.iter().zip(records) {
            assert_same(&record, &model::record_of(commit));
            model.apply(commit, record);
        }
    }
}

/// Of records that are known so far, the newest has the highest position.
fn assert_positions_grow(model: &Model, last: Position) -> Position {
    let newest = model.records.values().filter_map(|record| record.position).max();
    let newest = newest.unwrap_or(last);
    assert!(newest >= last, "positions went back");
    newest
}

async fn assert_content<H: Harness>(world: &World<H>, model: &Model) {
    for t in [tenant(1), tenant(2)] {
        for key in random::keys() {
            let expected = model.records.get(&(t, key.clone()));
            assert_eq!(world.record(t, &key).await.as_ref(), expected, "under {key}");
        }
        let log = world.log(t).await;
        assert_versions_follow(&log);
        let own = log.into_iter().filter(|event| event.stream.tenant == t);
        let own: Vec<_> = own.map(happened).collect();
        let expected = model.log.iter().filter(|one| one.stream.tenant == t);
        assert_eq!(own, expected.cloned().collect::<Vec<_>>());
    }
    for stream in random::accounts() {
        let events = world.events(&stream).await.into_iter().map(happened);
        let expected = model.log.iter().filter(|one| one.stream == stream);
        assert_eq!(events.collect::<Vec<_>>(), expected.cloned().collect::<Vec<_>>());
    }
}

fn happened(event: sequor_core::StoredEvent) -> Happened {
    Happened {
        stream: event.stream,
        version: event.version.get(),
        payload: event.payload,
        meta: event.meta,
    }
}

/// Asks for each value in a transaction that comes to nothing.
async fn assert_holders<H: Harness>(world: &World<H>, model: &Model) {
    for t in [tenant(1), tenant(2)] {
        for (scope, value) in random::values() {
            let probe = command(t).on("stranger", 0).hold(scope, value).build();
            let expected = model.expect(&probe);
            let mut transaction = world.begin(t).await;
            match world.write(&mut transaction, probe).await {
                Ok(()) => assert!(matches!(expected, Expected::Fresh(_)), "{expected:?}"),
                Err(error) => {
                    expected.assert_refused(error);
                }
            }
        }
    }
}

/// One command of a concurrent history, and whether it was acknowledged as fresh or known.
struct Told {
    commit: Commit,
    answer: Option<(bool, Record)>,
}

/// Whatever eight tasks do at once: versions have no holes, a key has one fresh record, and what
/// was acknowledged is there, and nothing else.
pub(crate) async fn oracle_holds_its_invariants_under_load<H: Harness>(world: World<H>) {
    for seed in seeds() {
        let _replay = Replay { seed, test: "oracle_holds_its_invariants_under_load" };
        let world = World::new(Arc::clone(&world.harness)).await;
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (world, random) = (world.clone(), Random::new(seed * 1_000 + task));
            tasks.spawn(async move { act(&world, random).await });
        }
        let told: Vec<Told> = tasks.join_all().await.into_iter().flatten().collect();
        assert_keys_are_fresh_once(&told);
        assert_acknowledged_is_present(&world, &told).await;
        world.assert_clean().await;
    }
}

async fn act<H: Harness>(world: &World<H>, mut random: Random) -> Vec<Told> {
    let mut told = Vec::new();
    for _ in 0..STEPS_OF_TASK {
        let of = random.tenant();
        let version_of = |stream: StreamId| async move { world.version(&stream).await };
        let commit = random::commit(&mut random, of, version_of).await;
        let answer = match random.below(5) {
            0 => in_transaction(world, &commit, random.happens(60)).await,
            1 | 2 => acknowledged(world.commit_counted(commit.clone()).await.ok()),
            _ => acknowledged(world.commit(commit.clone()).await.ok()),
        };
        told.push(Told { commit, answer });
    }
    told
}

fn acknowledged(committed: Option<Committed>) -> Option<(bool, Record)> {
    committed.map(|committed| match committed {
        Committed::Fresh(record) => (true, record),
        Committed::Known(record) => (false, record),
    })
}

async fn in_transaction<H: Harness>(
    world: &World<H>,
    commit: &Commit,
    commits: bool,
) -> Option<(bool, Record)> {
    let mut transaction = world.begin(commit.meta.tenant).await;
    if let Some(key) = &commit.meta.key
        && let Some(known) = transaction.claim(commit.meta.tenant, key).await.ok()?
    {
        return Some((false, known));
    }
    world.write(&mut transaction, commit.clone()).await.ok()?;
    if !commits {
        return None;
    }
    let records = transaction.commit().await.ok()?;
    records.into_iter().next().map(|record| (true, record))
}

fn assert_keys_are_fresh_once(told: &[Told]) {
    let mut fresh = HashMap::new();
    let keyed = |one: &Told| Some((one.commit.meta.tenant, one.commit.meta.key.clone()?));
    for one in told {
        if let (Some(key), Some((true, record))) = (keyed(one), &one.answer) {
            let before = fresh.insert(key, record);
            assert!(before.is_none(), "fresh twice: {before:?} and {record:?}");
        }
    }
    for one in told {
        if let (Some(key), Some((_, record))) = (keyed(one), &one.answer) {
            assert_eq!(fresh.get(&key), Some(&record), "another record than the fresh one");
        }
    }
}

async fn assert_acknowledged_is_present<H: Harness>(world: &World<H>, told: &[Told]) {
    let mut events: HashMap<CommandId, Vec<Happened>> = HashMap::new();
    let mut partitions = HashSet::new();
    for t in [tenant(1), tenant(2)] {
        if partitions.insert(world.store.partition(t)) {
            let log = world.log(t).await;
            assert_versions_follow(&log);
            for event in log {
                let of_command = events.entry(event.meta.command_id).or_default();
                of_command.push(happened(event));
            }
        }
    }
    for Told { commit, answer } in told {
        let is_fresh = matches!(answer, Some((true, _)));
        let mut expected = Model::default();
        if is_fresh {
            expected.apply(commit, model::record_of(commit));
        }
        let stored = events.remove(&commit.meta.command_id).unwrap_or_default();
        assert_eq!(stored, expected.log, "acknowledged is present: {answer:?}");
        if let (Some(key), Some((_, record))) = (&commit.meta.key, answer) {
            let stored = world.record(commit.meta.tenant, key.as_str()).await;
            assert_eq!(stored.as_ref(), Some(record));
        }
    }
    assert!(events.is_empty(), "events of no command: {events:?}");
}
