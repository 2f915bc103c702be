//! What all units of work of a service share.

use std::fmt;
use std::sync::Arc;

use sequor_core::ports::Store;
use sequor_core::{Limits, Projections, StoreError};

use crate::cache::Cache;
use crate::lanes::Lanes;
use crate::route::ServiceId;

/// What all units of work of a service share.
pub(crate) struct Backing<S: Store> {
    pub(crate) store: Arc<S>,
    pub(crate) projections: Projections<S::Connection>,
    pub(crate) limits: Limits,
    pub(crate) cache: Arc<Cache>,
    pub(crate) lanes: Arc<Lanes>,
}

impl<S: Store> Backing<S> {
    /// Forgets an aggregate of which the store has fewer events than we: somebody has taken some
    /// away, and what is cached never was, or is no more.
    pub(crate) fn forget_if_behind(&self, error: &StoreError) {
        if let StoreError::Conflict { stream, expected, actual } = error
            && actual < expected
        {
            self.cache.forget_beyond(stream, *actual);
        }
    }

    /// Its address: no other service has it as long as this one lives.
    pub(crate) fn service(&self) -> ServiceId {
        ServiceId(std::ptr::from_ref(self).addr())
    }
}

impl<S: Store> fmt::Debug for Backing<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backing")
            .field("projections", &self.projections)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}
