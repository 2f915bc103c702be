//! Time and ids are handed in, so that tests can hold them still.

use std::fmt;

use uuid::Uuid;

use crate::meta::Timestamp;

/// Tells the time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now, in UTC, cut to microseconds.
    fn now(&self) -> Timestamp;
}

/// Gives out ids.
pub trait Ids: fmt::Debug + Send + Sync + 'static {
    /// An id that was never given out before, later than those before (UUIDv7).
    fn next(&self) -> Uuid;
}
