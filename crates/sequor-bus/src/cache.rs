//! Recent aggregates, so that a hot command needs no load. Exact: the version is checked again
//! when the command commits.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::{Cache as QuickCache, EntryAction, EntryResult};
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

impl Entry {
    /// The state, if it is of type `A`.
    pub(crate) fn typed<A: Send + Sync + 'static>(self) -> Option<(Version, Arc<A>)> {
        Some((self.version, self.state.downcast().ok()?))
    }
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
        self.entries.get(stream)?.typed()
    }

    /// Forgets an aggregate that is newer than the stored one.
    pub(crate) fn forget_beyond(&self, stream: &StreamId, stored: Version) {
        self.entries.remove_if(stream, |held| held.version > stored);
    }

    /// Keeps an aggregate, unless a newer one is here.
    pub(crate) fn put(&self, stream: StreamId, entry: Entry) {
        let mut newer = Some(entry);
        let renew = |_: &StreamId, held: &mut Entry| {
            if let Some(entry) = newer.take().filter(|entry| entry.version > held.version) {
                *held = entry;
            }
            EntryAction::Retain(())
        };
        // Nobody keeps a place for long: it is filled right below.
        let place = self.entries.entry(&stream, Some(Duration::ZERO), renew);
        if let (EntryResult::Vacant(place), Some(entry)) = (place, newer) {
            // A place that was forgotten meanwhile stays empty.
            let _ = place.insert(entry);
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} of {})", self.entries.len(), self.entries.capacity())
    }
}

#[cfg(test)]
mod tests {
    use sequor_core::{AggregateId, Name, TenantId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_older_aggregate_never_takes_the_place_of_a_newer_one() {
        let tenant = TenantId::new(Uuid::from_u128(1)).unwrap();
        let (aggregate, id) = (Name::new("account").unwrap(), AggregateId::new("a").unwrap());
        let (cache, stream) = (Cache::new(10), StreamId { tenant, aggregate, id });
        let put = |version: u64| {
            let entry = Entry { version: Version::new(version), state: Arc::new(version) };
            cache.put(stream.clone(), entry);
            cache.get::<u64>(&stream).map(|(version, state)| (version.get(), *state))
        };
        assert_eq!(put(2), Some((2, 2)));
        assert_eq!(put(1), Some((2, 2)));
        assert_eq!(put(3), Some((3, 3)));
        cache.forget_beyond(&stream, Version::new(3));
        assert_eq!(put(1), Some((3, 3)), "it is no newer than what is stored");
        cache.forget_beyond(&stream, Version::new(2));
        assert_eq!(put(1), Some((1, 1)), "what was forgotten does not count");
    }
}
