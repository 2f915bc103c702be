//! How far the followers of this process have come, for those who wait.

use std::collections::HashMap;
use std::sync::Arc;

use sequor_core::Position;
use sequor_core::checkpoint::CheckpointId;
use tokio::sync::watch;

/// What a follower says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Everything up to here was taken in, or is parked; as far as this process knows.
    pub(crate) position: Position,
    /// Whether a stream may be parked.
    pub(crate) may_have_parked: bool,
    /// Whether this process moves the checkpoint.
    pub(crate) is_ours: bool,
    /// Why it stands still, if it does.
    pub(crate) trouble: Option<String>,
}

/// One place for each follower of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<HashMap<CheckpointId, watch::Sender<Seen>>>);

impl Board {
    pub(crate) fn new(checkpoints: impl IntoIterator<Item = CheckpointId>) -> Self {
        let seen = Seen {
            position: Position::START,
            may_have_parked: true,
            is_ours: false,
            trouble: None,
        };
        let place = |checkpoint| (checkpoint, watch::Sender::new(seen.clone()));
        Self(Arc::new(checkpoints.into_iter().map(place).collect()))
    }

    /// Writes what a follower says.
    pub(crate) fn write(&self, checkpoint: &CheckpointId, change: impl FnOnce(&mut Seen)) {
        if let Some(place) = self.0.get(checkpoint) {
            place.send_modify(change);
        }
    }

    /// Reads what it says, and waits for what it will; `None` when no follower is here.
    pub(crate) fn watch(&self, checkpoint: &CheckpointId) -> Option<watch::Receiver<Seen>> {
        self.0.get(checkpoint).map(watch::Sender::subscribe)
    }
}
