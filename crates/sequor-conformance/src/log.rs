//! Events in the order of their positions, each once, none that might still go.

use std::collections::HashMap;

use sequor_core::ports::{ReadLog, Store, Transaction};
use sequor_core::{Position, StoredEvent};
use tokio::task::JoinSet;

use crate::harness::Harness;
use crate::sample::{account, command, tenant};
use crate::world::World;

async fn page<H: Harness>(world: &World<H>, after: Position, limit: usize) -> Vec<StoredEvent> {
    let partition = world.store.partition(tenant(1));
    world.store.read_after(partition, after, limit).await.unwrap()
}

/// Each event is there as its stream shows it, in the order of commits.
pub(crate) async fn log_reads_in_the_order_of_positions<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for n in 0..5 {
        world.fresh(command(t).on("b", n).event().on("a", n).event().build()).await;
    }
    let log = world.log(t).await;
    assert_eq!(log.len(), 10);
    assert!(log.is_sorted_by(|one, two| one.position < two.position));
    assert!(log.iter().all(|event| event.position > Position::START));
    for id in ["a", "b"] {
        let of_stream = log.iter().filter(|event| event.stream.id.as_str() == id);
        let of_stream: Vec<_> = of_stream.cloned().collect();
        assert_eq!(of_stream, world.events(&account(t, id)).await);
    }
}

/// A page holds no more than asked for, and the next goes on where it ended.
pub(crate) async fn log_pages_by_limit<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(7).build()).await;
    let (mut all, mut after, mut sizes) = (Vec::new(), Position::START, Vec::new());
    loop {
        let page = page(&world, after, 3).await;
        sizes.push(page.len());
        let Some(last) = page.last() else { break };
        after = last.position;
        all.extend(page);
    }
    assert_eq!(sizes, [3, 3, 1, 0]);
    assert_eq!(all, world.events(&account(t, "a")).await);
    assert_eq!(page(&world, Position::START, 0).await, []);
}

/// A reader starts after any position, also one where there is no event.
pub(crate) async fn log_reads_after_a_position<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).events(5).build()).await;
    let log = world.log(t).await;
    for (n, event) in log.iter().enumerate() {
        assert_eq!(page(&world, event.position, 100).await, log[n + 1..]);
    }
    let beyond = Position::new(log[4].position.get() + 1_000);
    assert_eq!(page(&world, beyond, 100).await, []);
    assert_eq!(page(&world, Position::new(i64::MAX as u64), 100).await, []);
}

/// An empty store has an empty log.
pub(crate) async fn log_of_an_empty_store_is_empty<H: Harness>(world: World<H>) {
    assert_eq!(page(&world, Position::START, 100).await, []);
    world.fresh(command(tenant(1)).key("k").on("a", 0).build()).await;
    assert_eq!(page(&world, Position::START, 100).await, []);
}

/// What is not committed is not there; once committed, a reader who went on finds it.
pub(crate) async fn log_shows_nothing_uncommitted<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().build()).await;
    let before = world.log(t).await;
    let mut transaction = world.begin(t).await;
    world.write(&mut transaction, command(t).on("a", 1).event().build()).await.unwrap();
    assert_eq!(world.log(t).await, before);
    transaction.commit().await.unwrap();
    let found = page(&world, before[0].position, 100).await;
    assert_eq!(found.len(), 1, "a reader who went on finds it");
    assert_eq!(found[0].version.get(), 2);
}

/// Positions go on growing after rollbacks, and nobody's is given again.
pub(crate) async fn log_never_gives_a_position_twice<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut last = Position::START;
    for n in 0..10 {
        let record = world.fresh(command(t).on("a", n * 3).events(3).build()).await;
        let position = record.position.unwrap();
        assert!(position > last, "{position} was given after {last}");
        last = position;
        let mut transaction = world.begin(t).await;
        let commit = command(t).on("b", 0).events(5).build();
        world.write(&mut transaction, commit).await.unwrap();
        drop(transaction);
        world.refused(command(t).on("a", 0).event().build()).await;
    }
    let log = world.log(t).await;
    assert_eq!(log.len(), 30);
    assert!(log.is_sorted_by(|one, two| one.position < two.position));
}

/// A reader who follows writers and rollbacks sees each event once, in order.
pub(crate) async fn log_followed_under_load_skips_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let world = world.clone();
        writers.spawn(async move { write_some(&world, &format!("w{writer}")).await });
    }
    let (mut seen, mut after) = (Vec::new(), Position::START);
    loop {
        let over = writers.is_empty();
        let page = page(&world, after, 7).await;
        after = page.last().map_or(after, |event| event.position);
        let dry = page.is_empty();
        seen.extend(page);
        if over && dry {
            break;
        }
        while let Some(written) = writers.try_join_next() {
            written.unwrap();
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.len(), 8 * 20);
    assert_versions_follow(&seen);
    assert_eq!(seen, world.log(t).await);
}

async fn write_some<H: Harness>(world: &World<H>, id: &str) {
    let t = tenant(1);
    for n in 0..10 {
        world.fresh(command(t).on(id, n * 2).events(2).build()).await;
        if n % 3 == 0 {
            let mut transaction = world.begin(t).await;
            let vain = command(t).on(id, n * 2 + 2).event().build();
            world.write(&mut transaction, vain).await.unwrap();
        }
    }
}

/// Asserts that positions grow and each stream's versions arrive as 1, 2, 3 …
pub(crate) fn assert_versions_follow(log: &[StoredEvent]) {
    assert!(log.is_sorted_by(|one, two| one.position < two.position));
    let mut versions = HashMap::new();
    for event in log {
        let version: &mut u64 = versions.entry(&event.stream).or_default();
        *version += 1;
        assert_eq!(event.version.get(), *version, "in {}", event.stream);
    }
}
