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
        let turn = lane.lock_owned().await;
        Some(Turn { lanes: Arc::clone(self), stream: stream.clone(), turn: Some(turn) })
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

/// One's turn in a lane; dropping it lets the next one go, and closes an empty lane.
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
