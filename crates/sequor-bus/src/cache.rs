//! Recent aggregates, so that a hot command needs no load. Exact: the version is checked again
//! when the command commits.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache as QuickCache;
use sequor_core::{StreamId, Version};

/// Recent aggregates, bounded by their number.
pub(crate) struct Cache {
    entries: QuickCache<StreamId, Entry>,
}

/// An aggregate as of a version.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) version: Version,
    pub(crate) state: Arc<dyn Any + Send + Sync>,
}

impl Cache {
    pub(crate) fn new(aggregates_max: usize) -> Self {
        Self { entries: QuickCache::new(aggregates_max) }
    }

    /// The aggregate, if it is here and of type `A`.
    pub(crate) fn get<A: Send + Sync + 'static>(
        &self,
        stream: &StreamId,
    ) -> Option<(Version, Arc<A>)> {
        let Entry { version, state } = self.entries.get(stream)?;
        Some((version, state.downcast().ok()?))
    }

    pub(crate) fn forget(&self, stream: &StreamId) {
        self.entries.remove(stream);
    }

    pub(crate) fn put(&self, stream: StreamId, entry: Entry) {
        self.entries.insert(stream, entry);
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} of {})", self.entries.len(), self.entries.capacity())
    }
}
