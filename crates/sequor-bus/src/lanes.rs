//! Rivals for one aggregate queue up once they have met, so that a retry does not lose again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sequor_core::StreamId;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

/// How long anybody waits for a turn. A lane saves work, and nothing rests on it: who has waited
/// for so long goes on without.
const WAIT_MAX: Duration = Duration::from_secs(5);

type Lane = Arc<tokio::sync::Mutex<()>>;

/// The lanes that are open: one for each aggregate over which there was a conflict, as long as
/// somebody is in it. Without conflicts nobody waits and nothing is locked.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<StreamId, Lane>>,
    open: AtomicUsize,
}

impl Lanes {
    /// Waits for the turn of somebody who has met a rival, and opens the lane if it is not.
    pub(crate) async fn enter(self: &Arc<Self>, stream: &StreamId) -> Turn {
        let lane = {
            let mut lanes = self.lock();
            let lane = Arc::clone(lanes.entry(stream.clone()).or_default());
            self.open.store(lanes.len(), Ordering::Release);
            lane
        };
        self.wait(lane, stream).await
    }

    /// Waits for the turn of a newcomer, if the lane is open.
    pub(crate) async fn enter_if_open(self: &Arc<Self>, stream: &StreamId) -> Option<Turn> {
        if self.open.load(Ordering::Acquire) == 0 {
            return None;
        }
        let lane = Arc::clone(self.lock().get(stream)?);
        Some(self.wait(lane, stream).await)
    }

    async fn wait(self: &Arc<Self>, lane: Lane, stream: &StreamId) -> Turn {
        // Who gives up waiting leaves as well, and may have been the last one in the lane.
        let mut turn = Turn { lanes: Arc::clone(self), stream: stream.clone(), turn: None };
        turn.turn = timeout(WAIT_MAX, lane.lock_owned()).await.ok();
        turn
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One's turn in a lane, or the wait for it; dropping it lets the next one go, and closes an empty
/// lane.
#[derive(Debug)]
pub(crate) struct Turn {
    lanes: Arc<Lanes>,
    stream: StreamId,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lock();
        self.turn = None;
        // Invariant: a lane is handed out under the same lock, so a count of one is the map's own.
        if lanes.get(&self.stream).is_some_and(|lane| Arc::strong_count(lane) == 1) {
            lanes.remove(&self.stream);
        }
        self.lanes.open.store(lanes.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use sequor_core::{AggregateId, Name, TenantId};
    use uuid::Uuid;

    use super::*;

    fn stream() -> StreamId {
        let tenant = TenantId::new(Uuid::from_u128(1)).unwrap();
        let (aggregate, id) = (Name::new("account").unwrap(), AggregateId::new("a").unwrap());
        StreamId { tenant, aggregate, id }
    }

    /// Polls once.
    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_waited_for_too_long_goes_on_without_a_turn() {
        let (lanes, stream) = (Arc::new(Lanes::default()), stream());
        let first = lanes.enter(&stream).await;
        let second = lanes.enter(&stream).await;
        assert!(first.turn.is_some() && second.turn.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_one_closes_the_lane_even_if_it_gives_up_waiting() {
        let (lanes, stream) = (Arc::new(Lanes::default()), stream());
        let mut first = Box::pin(lanes.enter(&stream));
        let Poll::Ready(turn) = poll(first.as_mut()) else { panic!("it is free") };
        let mut second = Box::pin(lanes.enter(&stream));
        assert!(poll(second.as_mut()).is_pending());
        drop(turn);
        assert_eq!(lanes.open.load(Ordering::Acquire), 1);
        drop(second);
        assert_eq!(lanes.open.load(Ordering::Acquire), 0);
    }

    #[test]
    fn without_rivals_there_is_no_lane() {
        let (lanes, stream) = (Arc::new(Lanes::default()), stream());
        let enters = pin!(lanes.enter_if_open(&stream));
        assert!(matches!(poll(enters), Poll::Ready(None)));
    }
}
