//! One runner at a time may move a checkpoint.

use std::time::Duration;

use sequor_core::Name;
use sequor_core::checkpoint::Release;
use sequor_core::ports::KeepLeases;
use uuid::Uuid;

use crate::harness::Harness;
use crate::world::World;

const TTL: Duration = Duration::from_secs(60);

fn runner(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Nobody takes what somebody else has; other checkpoints are free.
pub(crate) async fn lease_is_one_runners<H: Harness>(world: World<H>) {
    let checkpoint = world.checkpoint("sums", 1);
    let lease = world.lease(&checkpoint, runner(1)).await.expect("nobody has it");
    assert_eq!(lease.checkpoint, checkpoint);
    assert_eq!(world.lease(&checkpoint, runner(2)).await, None);
    assert!(world.lease(&world.checkpoint("sums", 2), runner(2)).await.is_some());
    assert!(world.lease(&world.checkpoint("counts", 1), runner(3)).await.is_some());
}

/// Who renews a lease keeps its term.
pub(crate) async fn lease_renewed_keeps_its_term<H: Harness>(world: World<H>) {
    let checkpoint = world.checkpoint("sums", 1);
    let first = world.lease(&checkpoint, runner(1)).await;
    assert!(first.is_some());
    for _ in 0..3 {
        assert_eq!(world.lease(&checkpoint, runner(1)).await, first);
    }
}

/// Who takes over has a higher term, also who comes back.
pub(crate) async fn lease_taken_over_has_a_higher_term<H: Harness>(world: World<H>) {
    let checkpoint = world.checkpoint("sums", 1);
    let mut last = 0;
    for n in 0..6 {
        let owner = runner(1 + n % 2);
        let lease = world.lease(&checkpoint, owner).await.expect("it was let go of");
        assert!(lease.term > last, "term {} after {last}", lease.term);
        last = lease.term;
        world.store.lease(&checkpoint, owner, Duration::ZERO).await.unwrap();
    }
}

/// Of many who want a lease at once, one gets it.
pub(crate) async fn lease_raced_for_goes_to_one<H: Harness>(world: World<H>) {
    let checkpoint = world.checkpoint("sums", 1);
    let mut racing = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (world, checkpoint) = (world.clone(), checkpoint.clone());
        racing.spawn(async move { world.lease(&checkpoint, runner(n + 1)).await });
    }
    let leases: Vec<_> = racing.join_all().await.into_iter().flatten().collect();
    assert_eq!(leases.len(), 1, "{leases:?}");
}

/// Runners of a release that are alive are counted, until they take leave.
pub(crate) async fn lease_counts_the_runners_of_a_release<H: Harness>(world: World<H>) {
    let release = |version| {
        let projection = Name::new("sums").unwrap();
        Release { projection, version }
    };
    for n in 1..=3 {
        for _ in 0..2 {
            let alive = world.store.check_in(&release(1), runner(n as u128), TTL).await.unwrap();
            assert_eq!(alive, n);
        }
    }
    assert_eq!(world.store.check_in(&release(2), runner(1), TTL).await.unwrap(), 1);
    assert_eq!(world.store.check_in(&release(1), runner(2), Duration::ZERO).await.unwrap(), 2);
    assert_eq!(world.store.check_in(&release(1), runner(1), TTL).await.unwrap(), 2);
}
