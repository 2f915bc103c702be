//! What a store can answer instead of doing its work.

use std::fmt;
use std::sync::Arc;

use super::{Error, Invalid};
use crate::meta::CommandId;
use crate::names::Name;
use crate::stream::{StreamId, Version};

/// What a store answers instead of doing its work. Nothing was written, except with
/// [`StoreError::Unknown`], where nobody can tell.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A stream has moved on. Load again and decide again.
    #[error("{stream} is at version {actual}, not {expected}")]
    Conflict {
        /// Which stream.
        stream: StreamId,
        /// The version that was decided on.
        expected: Version,
        /// The version that is stored; the expected one, where it was made by another command
        /// than the awaited one.
        actual: Version,
    },
    /// Another aggregate of the tenant holds the value.
    #[error("`{value}` in `{scope}` is held by {holder}")]
    UniqueTaken {
        /// What kind of value.
        scope: Name,
        /// The value.
        value: String,
        /// Who holds it.
        holder: StreamId,
    },
    /// Somebody else held a lock for longer than the bounded wait. Try again.
    #[error("the store was busy for too long")]
    Busy,
    /// The store cannot be reached or written now. Try again later.
    #[error("the store is not available: {0}")]
    Unavailable(Cause),
    /// The connection was lost while committing.
    #[error("the connection was lost while committing")]
    Unknown,
    /// The request cannot be stored.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// What is stored, or a projection, is broken.
    #[error("{what}")]
    Corrupt {
        /// What and where, without data.
        what: String,
    },
}

/// Why a store is not available: the driver's own error, for logs only.
#[derive(Clone)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl Cause {
    /// Keeps an error or a message.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Arc::from(cause.into()))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StoreError {
    /// A store that cannot be reached or written now.
    pub fn unavailable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(Cause::new(cause))
    }

    /// Whether loading and deciding again may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Busy)
    }

    /// What a caller of `command_id` sees.
    #[must_use]
    pub fn for_command<R>(self, command_id: CommandId) -> Error<R> {
        match self {
            Self::Conflict { stream, expected, actual } => {
                Error::Conflict { stream, expected, actual }
            }
            Self::UniqueTaken { scope, value, holder } => {
                Error::UniqueTaken { scope, value, holder }
            }
            Self::Busy => Error::Unavailable { cause: Cause::new("busy for too long") },
            Self::Unavailable(cause) => Error::Unavailable { cause },
            Self::Unknown => Error::Unknown { command_id },
            Self::Invalid(invalid) => Error::Invalid(invalid),
            Self::Corrupt { what } => Error::Corrupt { what },
        }
    }
}
