//! Rivals for one aggregate queue up once they have met, so that a retry does not lose again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sequor_core::StreamId;
use tokio::sync::OwnedMutexGuard;

type Lane = Arc<tokio::sync::Mutex<()>>;

/// The lanes that are open: one for each aggregate over which there was a conflict, as long as
/// somebody is in it. Without conflicts nobody waits and nothing is locked.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<StreamId, Lane>>,
    open: AtomicUsize,
}

impl Lanes {
    /// Waits for one's turn. Who has met a rival opens the lane; newcomers enter it if it is open.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        stream: &StreamId,
        met_rival: bool,
    ) -> Option<Turn> {
        if !met_rival && self.open.load(Ordering::Acquire) == 0 {
            return None;
        }
        let lane = self.lane(stream, met_rival)?;
        // Who gives up waiting leaves as well, and may have been the last one in the lane.
        let mut turn = Turn { lanes: Arc::clone(self), stream: stream.clone(), turn: None };
        turn.turn = Some(lane.lock_owned().await);
        Some(turn)
    }

    fn lane(&self, stream: &StreamId, open: bool) -> Option<Lane> {
        let mut lanes = self.lock();
        if !open {
            return lanes.get(stream).map(Arc::clone);
        }
        let lane = Arc::clone(lanes.entry(stream.clone()).or_default());
        self.open.store(lanes.len(), Ordering::Release);
        Some(lane)
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
    use std::task::{Context, Waker};

    use sequor_core::{AggregateId, Name, TenantId};
    use uuid::Uuid;

    use super::*;

    fn stream() -> StreamId {
        let tenant = TenantId::new(Uuid::from_u128(1)).unwrap();
        let (aggregate, id) = (Name::new("account").unwrap(), AggregateId::new("a").unwrap());
        StreamId { tenant, aggregate, id }
    }

    /// Polls once.
    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_last_one_closes_the_lane_even_if_it_gives_up_waiting() {
        let (lanes, stream) = (Arc::new(Lanes::default()), stream());
        let mut first = Box::pin(lanes.enter(&stream, true));
        let std::task::Poll::Ready(Some(turn)) = poll(first.as_mut()) else { panic!("it is free") };
        let mut second = Box::pin(lanes.enter(&stream, true));
        assert!(poll(second.as_mut()).is_pending());
        drop(turn);
        assert_eq!(lanes.open.load(Ordering::Acquire), 1);
        drop(second);
        assert_eq!(lanes.open.load(Ordering::Acquire), 0);
    }

    #[test]
    fn without_rivals_there_is_no_lane() {
        let (lanes, stream) = (Arc::new(Lanes::default()), stream());
        let enters = pin!(lanes.enter(&stream, false));
        assert!(matches!(poll(enters), std::task::Poll::Ready(None)));
    }
}
