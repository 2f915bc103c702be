//! Errors, named by what the caller does next.

mod invalid;
mod store;

use std::fmt;
use std::time::Duration;

pub use invalid::Invalid;
pub use store::{Cause, StoreError};

use crate::meta::{CommandId, Timestamp};
use crate::names::Name;
use crate::stream::{StreamId, Version};

/// What kept a command from taking effect. Each variant says what the caller does next; each
/// carries ids. Only `cause` and `what` may quote the driver or a projection: they are for logs.
///
/// `R` is the command's own rejection; inside the chain it is erased to [`Rejection`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<R = Rejection> {
    /// The domain said no. Nothing is recorded; a retry decides anew.
    #[error("rejected: {0}")]
    Rejected(R),
    /// Fix the request.
    #[error("invalid: {0}")]
    Invalid(Invalid),
    /// The actor may not do this.
    #[error("unauthorized: {reason}")]
    Unauthorized {
        /// For logs and tests.
        reason: String,
    },
    /// It has been done (Strict mode only).
    #[error(transparent)]
    Replay(ErrReplay),
    /// The key names another request. Take a new key for a new intent; the first record stays.
    #[error("key reused: it names command `{command_name}` {command_id} with another content")]
    KeyReused {
        /// The command that the key names.
        command_id: CommandId,
        /// Its name.
        command_name: Name,
    },
    /// The same command is running; try again later with the same key.
    #[error("in progress: try again in {retry_after:?} with the same key")]
    InProgress {
        /// How long to wait.
        retry_after: Duration,
    },
    /// Somebody else changed the aggregate, more often than the bus retried.
    #[error("conflict: {stream} is at version {actual}, not {expected}")]
    Conflict {
        /// Which aggregate.
        stream: StreamId,
        /// The version that was decided on.
        expected: Version,
        /// The version that is stored.
        actual: Version,
    },
    /// Another aggregate of the tenant holds the value.
    #[error("unique value taken: `{value}` in `{scope}` is held by {holder}")]
    UniqueTaken {
        /// What kind of value.
        scope: Name,
        /// The value.
        value: String,
        /// Who holds it.
        holder: StreamId,
    },
    /// The key is too old to be replayed, and does not run again.
    #[error("key expired: it named command {command_id}")]
    KeyExpired {
        /// The command that it named.
        command_id: CommandId,
    },
    /// A call to the outside may or may not have happened; somebody must resolve it.
    #[error("in doubt: command {command_id} left the database and did not come back")]
    InDoubt {
        /// The command.
        command_id: CommandId,
    },
    /// A command that the handler issued failed, and with it the whole transaction.
    #[error("issued command `{command_name}`: {source}")]
    Issued {
        /// The issued command.
        command_name: Name,
        /// Why it failed.
        source: Box<Error>,
    },
    /// The store cannot be reached or written now, and nothing was: try again, same key.
    #[error("unavailable: {cause}")]
    Unavailable {
        /// For logs.
        cause: Cause,
    },
    /// The connection was lost while committing: a retry with the same key tells.
    #[error("unknown: command {command_id} may have taken effect; retry with the same key")]
    Unknown {
        /// The command.
        command_id: CommandId,
    },
    /// What is stored, or a part of the program, is broken; do not retry, call somebody.
    #[error("corrupt: {what}")]
    Corrupt {
        /// What and where, without data.
        what: String,
    },
}

/// The command had taken effect before (Strict mode).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("replay: command `{command_name}` {command_id} took effect at {recorded_at}")]
pub struct ErrReplay {
    /// The first command under the key.
    pub command_id: CommandId,
    /// Its name.
    pub command_name: Name,
    /// When it was taken in.
    pub recorded_at: Timestamp,
}

impl<R> From<Invalid> for Error<R> {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl<R> Error<R> {
    /// The same error with another kind of rejection.
    pub fn map_rejection<Q>(self, map: impl FnOnce(R) -> Error<Q>) -> Error<Q> {
        match self {
            Self::Rejected(rejection) => map(rejection),
            Self::Invalid(invalid) => Error::Invalid(invalid),
            Self::Unauthorized { reason } => Error::Unauthorized { reason },
            Self::Replay(replay) => Error::Replay(replay),
            Self::KeyReused { command_id, command_name } => {
                Error::KeyReused { command_id, command_name }
            }
            Self::InProgress { retry_after } => Error::InProgress { retry_after },
            Self::Conflict { stream, expected, actual } => {
                Error::Conflict { stream, expected, actual }
            }
            Self::UniqueTaken { scope, value, holder } => {
                Error::UniqueTaken { scope, value, holder }
            }
            Self::KeyExpired { command_id } => Error::KeyExpired { command_id },
            Self::InDoubt { command_id } => Error::InDoubt { command_id },
            Self::Issued { command_name, source } => Error::Issued { command_name, source },
            Self::Unavailable { cause } => Error::Unavailable { cause },
            Self::Unknown { command_id } => Error::Unknown { command_id },
            Self::Corrupt { what } => Error::Corrupt { what },
        }
    }
}

/// A domain's rejection without its type, for middleware and lists of mixed commands.
pub struct Rejection(Box<dyn std::error::Error + Send + Sync>);

impl Rejection {
    /// Erases a rejection's type.
    pub fn new(rejection: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(rejection))
    }

    /// The rejection, if it is an `R`.
    #[must_use]
    pub fn downcast_ref<R: std::error::Error + 'static>(&self) -> Option<&R> {
        self.0.downcast_ref()
    }

    /// The rejection as an `R`.
    ///
    /// # Errors
    /// Itself, when it is of another type.
    pub fn downcast<R: std::error::Error + 'static>(self) -> Result<R, Self> {
        self.0.downcast().map(|rejection| *rejection).map_err(Self)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Rejection {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
