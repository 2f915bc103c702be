//! Whoever waits for events hears of those that this process commits.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::stream::{Partition, Position};

/// A store that says when something was committed through it. What other processes commit is found
/// by looking.
pub trait Wake: Send + Sync + 'static {
    /// Those who are told.
    fn listeners(&self) -> &Listeners;
}

/// Wants to hear of commits. Called in the middle of commits: it must neither wait nor fail.
pub trait Listen: Send + Sync + 'static {
    /// Events up to this position of the partition became true.
    fn committed(&self, partition: Partition, position: Position);
}

/// Those who want to hear of a store's commits, as long as they live.
#[derive(Default)]
pub struct Listeners {
    /// Spares each commit the lock where nobody listens.
    are_there: AtomicBool,
    all: RwLock<Vec<Weak<dyn Listen>>>,
}

impl Listeners {
    /// Tells this one too, until its last owner drops it.
    pub fn add(&self, listener: &Arc<dyn Listen>) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(listener));
        self.are_there.store(true, Ordering::Release);
    }

    /// Tells everybody.
    pub fn committed(&self, partition: Partition, position: Position) {
        if !self.are_there.load(Ordering::Acquire) {
            return;
        }
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        for listener in all.iter().filter_map(Weak::upgrade) {
            listener.committed(partition, position);
        }
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are_there = self.are_there.load(Ordering::Acquire);
        f.debug_struct("Listeners").field("are_there", &are_there).finish_non_exhaustive()
    }
}
