//! How many partitions of a projection this process takes, so that the others find some too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Of one projection: how many partitions this process has, and how many it should.
#[derive(Clone, Debug)]
pub(crate) struct Share(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    partitions: usize,
    held: AtomicUsize,
    fair: AtomicUsize,
}

impl Share {
    /// Of `partitions`, all, until it is known that there are others.
    pub(crate) fn of(partitions: usize) -> Self {
        let (held, fair) = (AtomicUsize::new(0), AtomicUsize::new(partitions));
        Self(Arc::new(Counts { partitions, held, fair }))
    }

    /// So many runners share the work.
    pub(crate) fn divide(&self, runners: usize) {
        self.0.fair.store(self.0.partitions.div_ceil(runners.max(1)), Ordering::Relaxed);
    }

    /// Takes a place, if there is one.
    pub(crate) fn enter(&self) -> Option<Place> {
        let fair = self.0.fair.load(Ordering::Relaxed);
        let enter = |held: usize| (held < fair).then(|| held + 1);
        let entered = self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter);
        entered.ok().map(|_| Place { share: self.clone(), is_left: AtomicBool::new(false) })
    }
}

/// One of the places that this process has taken. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place {
    share: Share,
    is_left: AtomicBool,
}

impl Place {
    /// Whether others lack it. Then it is given back at once, so that no two give way for the same
    /// reason.
    pub(crate) fn is_one_too_many(&self) -> bool {
        let Counts { held, fair, .. } = &*self.share.0;
        let fair = fair.load(Ordering::Relaxed);
        let leave = |held: usize| (held > fair).then(|| held - 1);
        let left = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, leave).is_ok();
        self.is_left.fetch_or(left, Ordering::Relaxed);
        left
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let is_held = !self.is_left.load(Ordering::Relaxed);
        self.share.0.held.fetch_sub(usize::from(is_held), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn partitions_are_divided_among_runners() {
        let share = Share::of(16);
        let mut places: Vec<_> = std::iter::from_fn(|| share.enter()).take(20).collect();
        assert_eq!(places.len(), 16);
        places.retain(|place| !place.is_one_too_many());
        assert_eq!(places.len(), 16, "alone it has all");
        share.divide(3);
        places.retain(|place| !place.is_one_too_many());
        assert_eq!(places.len(), 6, "six of sixteen are a fair third");
        assert!(share.enter().is_none());
        places.pop();
        assert!(share.enter().is_some());
    }
}
