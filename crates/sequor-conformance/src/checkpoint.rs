//! A projection's rows and its checkpoint become true together, moved by one at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sequor_core::checkpoint::{
    CheckpointId, Lease, Mover, Parking, Progress, Standing, StreamStanding,
};
use sequor_core::ports::{KeepCheckpoints, KeepLeases, Step, Store};
use sequor_core::{Name, Position, StoreError, StoredEvent, Timestamp, Version};
use uuid::Uuid;

use crate::harness::{Harness, Tally};
use crate::sample::projections::Fragile;
use crate::sample::{DOOMED, PANICKING, account, command, tenant};
use crate::world::World;

const TTL: Duration = Duration::from_secs(60);

type StepOf<H> = <<H as Harness>::Store as KeepCheckpoints>::Step;

fn runner(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

impl<H: Harness> World<H> {
    /// The checkpoint of a release of a projection, where tenant 1 is.
    pub(crate) fn checkpoint(&self, projection: &'static str, version: u32) -> CheckpointId {
        let projection = Name::new(projection).unwrap();
        CheckpointId { projection, version, partition: self.store.partition(tenant(1)) }
    }

    pub(crate) async fn lease(&self, checkpoint: &CheckpointId, owner: Uuid) -> Option<Lease> {
        self.store.lease(checkpoint, owner, TTL).await.unwrap()
    }

    async fn leased(&self, checkpoint: &CheckpointId) -> Mover {
        Mover::Term(self.lease(checkpoint, runner(1)).await.expect("it is free").term)
    }

    async fn step(&self, checkpoint: &CheckpointId, mover: Mover) -> StepOf<H> {
        let streams = [account(tenant(1), "a"), account(tenant(1), "b")];
        let step = self.store.begin_step(checkpoint, mover, &streams).await.unwrap();
        step.expect("it has the lease")
    }

    /// Shows events to the projection that counts them.
    async fn count(&self, step: &mut StepOf<H>, events: &[StoredEvent]) -> Result<(), StoreError> {
        let counting = Fragile(Arc::clone(&self.harness));
        step.project(&counting, &events.iter().collect::<Vec<_>>()).await
    }

    async fn position(&self, checkpoint: &CheckpointId) -> Option<Position> {
        let CheckpointId { projection, version, partition } = checkpoint;
        let all = self.store.checkpoints(projection, *version).await.unwrap();
        all.into_iter().find(|(one, _)| one == partition).map(|(_, position)| position)
    }
}

/// What a step saves that has taken in so many events of the log.
fn after(log: &[StoredEvent], taken: usize) -> Progress {
    let mut versions = BTreeMap::new();
    for event in &log[..taken] {
        versions.insert(event.stream.clone(), standing(event.version.get(), None));
    }
    Progress { position: Some(log[taken - 1].position), streams: versions.into_iter().collect() }
}

fn parking(reason: &str, since: i64) -> Parking {
    let since = Timestamp::from_micros(since).unwrap();
    Parking { reason: reason.to_owned(), attempts: 3, since }
}

fn standing(version: u64, parked: Option<Parking>) -> StreamStanding {
    StreamStanding { version: Version::new(version), parked }
}

/// A checkpoint that was never saved stands at the start.
pub(crate) async fn checkpoint_begins_at_the_start<H: Harness>(world: World<H>) {
    let checkpoint = world.checkpoint("sums", 1);
    let mover = world.leased(&checkpoint).await;
    let step = world.step(&checkpoint, mover).await;
    assert_eq!(*step.standing(), Standing { position: Position::START, streams: [].into() });
    drop(step);
    assert_eq!(world.position(&checkpoint).await, None);
}

/// Rows and position become true together, and the next step goes on there.
pub(crate) async fn checkpoint_moves_with_its_rows<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(3).build()).await;
    let log = world.log(t).await;
    let checkpoint = world.checkpoint("sums", 1);
    let mover = world.leased(&checkpoint).await;
    for (n, event) in log.iter().enumerate() {
        let mut step = world.step(&checkpoint, mover).await;
        world.count(&mut step, std::slice::from_ref(event)).await.unwrap();
        assert_eq!(world.tally(t).await.count, n as u64, "not before it is saved");
        step.save(after(&log, n + 1)).await.unwrap();
        assert_eq!(world.tally(t).await.count, n as u64 + 1);
        assert_eq!(world.position(&checkpoint).await, Some(event.position));
        let step = world.step(&checkpoint, mover).await;
        assert_eq!(step.standing().position, event.position);
    }
}

/// A step that is dropped leaves nothing, neither rows nor position.
pub(crate) async fn checkpoint_of_a_dropped_step_stays<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(3).build()).await;
    let checkpoint = world.checkpoint("sums", 1);
    let mover = world.leased(&checkpoint).await;
    let mut step = world.step(&checkpoint, mover).await;
    world.count(&mut step, &world.log(t).await).await.unwrap();
    drop(step);
    assert_eq!(world.tally(t).await, Tally::default());
    assert_eq!(world.position(&checkpoint).await, None);
    drop(world.step(&checkpoint, mover).await);
}

/// A projection that fails or panics says so, names itself, and its step cannot be saved.
pub(crate) async fn checkpoint_of_a_failed_projection_stays<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().event_named(DOOMED).build()).await;
    world.fresh(command(t).on("b", 0).event().event_named(PANICKING).build()).await;
    let log = world.log(t).await;
    let checkpoint = world.checkpoint("sums", 1);
    let mover = world.leased(&checkpoint).await;
    for events in [&log[..2], &log[2..]] {
        let mut step = world.step(&checkpoint, mover).await;
        let failed = world.count(&mut step, events).await.unwrap_err();
        assert!(matches!(&failed, StoreError::Corrupt { what } if what.contains("`fragile`")));
        assert!(world.count(&mut step, &log[..1]).await.is_err(), "nothing goes on in it");
        assert!(step.save(after(&log, log.len())).await.is_err());
        assert_eq!(world.tally(t).await, Tally::default());
        assert_eq!(world.position(&checkpoint).await, None);
    }
}

/// Who has lost the lease moves nothing any more, and who has it goes on where the other ended.
pub(crate) async fn checkpoint_moves_for_the_latest_term_only<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(2).build()).await;
    let log = world.log(t).await;
    let checkpoint = world.checkpoint("sums", 1);
    let first = world.leased(&checkpoint).await;
    world.step(&checkpoint, first).await.save(after(&log, 1)).await.unwrap();
    world.store.lease(&checkpoint, runner(1), Duration::ZERO).await.unwrap();
    let second = Mover::Term(world.lease(&checkpoint, runner(2)).await.expect("let go of").term);
    assert!(world.store.begin_step(&checkpoint, first, &[]).await.unwrap().is_none());
    let step = world.step(&checkpoint, second).await;
    assert_eq!(step.standing().position, log[0].position);
    step.save(after(&log, 2)).await.unwrap();
    assert_eq!(world.position(&checkpoint).await, Some(log[1].position));
}

/// Two steps of one checkpoint follow each other: the second sees what the first has saved.
pub(crate) async fn checkpoint_has_one_step_at_a_time<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().build()).await;
    let log = world.log(t).await;
    let checkpoint = world.checkpoint("sums", 1);
    let mover = world.leased(&checkpoint).await;
    let first = world.step(&checkpoint, mover).await;
    let waiting = tokio::spawn({
        let (world, checkpoint) = (world.clone(), checkpoint.clone());
        async move { world.step(&checkpoint, Mover::Operator).await.standing().position }
    });
    tokio::task::yield_now().await;
    first.save(after(&log, 1)).await.unwrap();
    assert_eq!(waiting.await.unwrap(), log[0].position);
}

/// Streams keep how far they were taken in, and only those that are asked for are told.
pub(crate) async fn checkpoint_keeps_the_versions_of_streams<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("z", 0).events(2).on("a", 0).events(4).build()).await;
    let log = world.log(t).await;
    let checkpoint = world.checkpoint("sums", 1);
    let mover = world.leased(&checkpoint).await;
    for version in [1, 4] {
        let progress = after(&log, 2 + version);
        world.step(&checkpoint, mover).await.save(progress).await.unwrap();
        let told = [(account(t, "a"), standing(version as u64, None))].into();
        let asked = [account(t, "a"), account(t, "b")];
        let stands = world.store.standing(&checkpoint, &asked).await.unwrap();
        let step = world.step(&checkpoint, mover).await;
        assert_eq!(*step.standing(), stands);
        assert_eq!(stands.streams, told);
        assert_eq!(stands.position, log[1 + version].position);
    }
}

/// Releases of a projection, and projections, do not meet.
pub(crate) async fn checkpoint_of_each_release_is_its_own<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(3).build()).await;
    let log = world.log(t).await;
    let all = [("sums", 1), ("sums", 2), ("counts", 1)];
    for (n, (name, version)) in all.into_iter().enumerate() {
        let checkpoint = world.checkpoint(name, version);
        let mover = world.leased(&checkpoint).await;
        let step = world.step(&checkpoint, mover).await;
        assert_eq!(step.standing().position, Position::START);
        assert!(step.standing().streams.is_empty());
        step.save(after(&log, n + 1)).await.unwrap();
    }
    for (n, (name, version)) in all.into_iter().enumerate() {
        let checkpoint = world.checkpoint(name, version);
        let step = world.step(&checkpoint, Mover::Operator).await;
        assert_eq!(step.standing().position, log[n].position);
        assert_eq!(step.standing().streams[&account(t, "a")].version, log[n].version);
    }
}

/// What is parked is listed with its reason, those of longest standing first, until it is freed.
pub(crate) async fn checkpoint_lists_what_is_parked<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let sample = command(t).on("b", 0).event().on("c", 0).event().on("a", 0).events(3);
    world.fresh(sample.build()).await;
    let last = world.log(t).await[4].position;
    let checkpoint = world.checkpoint("sums", 1);
    let mover = world.leased(&checkpoint).await;
    let streams = vec![
        (account(t, "b"), standing(0, Some(parking("no such \"account\" \\ 'b'\nä", 2_000_000)))),
        (account(t, "a"), standing(2, Some(parking("overdrawn", 1_000_000)))),
        (account(t, "c"), standing(1, None)),
    ];
    let progress = Progress { position: Some(last), streams: streams.clone() };
    world.step(&checkpoint, mover).await.save(progress).await.unwrap();
    let listed = world.store.parked(&checkpoint.projection, 1, 10).await.unwrap();
    let listed: Vec<_> = listed
        .into_iter()
        .map(|one| {
            assert_eq!(one.checkpoint, checkpoint);
            (one.stream, standing(one.version.get(), Some(one.parking)))
        })
        .collect();
    assert_eq!(listed, [streams[1].clone(), streams[0].clone()]);
    assert_eq!(world.store.parked(&checkpoint.projection, 1, 1).await.unwrap().len(), 1);
    assert_eq!(world.store.parked(&checkpoint.projection, 2, 10).await.unwrap(), []);

    let step = world.step(&checkpoint, Mover::Operator).await;
    assert_eq!(step.standing().streams, streams[..2].iter().cloned().collect());
    let freed = [(account(t, "a"), standing(3, None)), (account(t, "b"), standing(1, None))];
    step.save(Progress { position: None, streams: freed.into() }).await.unwrap();
    assert_eq!(world.store.parked(&checkpoint.projection, 1, 10).await.unwrap(), []);
    assert_eq!(world.position(&checkpoint).await, Some(last), "it was left");
}
