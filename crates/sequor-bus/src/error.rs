//! Errors on their way through the bus: with and without the type of the rejection.

use sequor_core::{CommandId, Error, Invalid, Name, Record, Rejection, StoreError};
use uuid::Uuid;

/// Why a command did not run to its end.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The key is known: its record answers.
    Known(Box<Record>),
    /// What was decided on did not become true, or not only that: decide again, it counts as no
    /// try.
    Fell,
    /// The store did not do its work.
    Store(StoreError),
    /// A conflict with what was believed of the aggregate without asking the store: it may be long
    /// past. Nobody need be in the way now, so deciding again on what is stored may help at once.
    Behind(StoreError),
    /// An error behind which the store did not do its work; loading and deciding again may help.
    Transient(Error),
    /// Anything else.
    Failed(Error),
}

impl Halt {
    /// Whether loading and deciding again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Known(_) => false,
            Self::Fell | Self::Transient(_) => true,
            Self::Store(error) | Self::Behind(error) => error.is_transient(),
            Self::Failed(error) => matches!(error, Error::Conflict { .. }),
        }
    }

    /// Whether somebody else has changed the aggregate.
    pub(crate) fn is_conflict(&self) -> bool {
        match self {
            Self::Known(_) | Self::Fell => false,
            Self::Store(error) | Self::Behind(error) => {
                matches!(error, StoreError::Conflict { .. })
            }
            Self::Transient(error) | Self::Failed(error) => matches!(error, Error::Conflict { .. }),
        }
    }
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Invalid> for Halt {
    fn from(invalid: Invalid) -> Self {
        Self::Failed(Error::Invalid(invalid))
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<RepoError> for Halt {
    fn from(RepoError(error): RepoError) -> Self {
        Self::Store(error)
    }
}

/// What a unit of work answers a handler instead of doing its work. It turns into an [`Error`] of
/// any command by `?`.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct RepoError(#[from] StoreError);

impl RepoError {
    pub(crate) fn without_transaction() -> Self {
        Self(StoreError::Corrupt { what: "a decider has no connection; use a handler".into() })
    }
}

impl From<Invalid> for RepoError {
    fn from(invalid: Invalid) -> Self {
        Self(StoreError::Invalid(invalid))
    }
}

impl<R> From<RepoError> for Error<R> {
    fn from(RepoError(error): RepoError) -> Self {
        of_reading(error)
    }
}

/// Gives the rejection its type back. One of another type comes from a middleware of the user's.
pub(crate) fn typed<R: std::error::Error + 'static>(
    error: Error,
    command: &'static str,
) -> Error<R> {
    error.map_rejection(|rejection| match rejection.downcast() {
        Ok(rejection) => Error::Rejected(rejection),
        Err(other) => match Name::new(command) {
            Ok(command_name) => {
                Error::Issued { command_name, source: Box::new(Error::Rejected(other)) }
            }
            Err(invalid) => Error::Invalid(invalid),
        },
    })
}

/// Takes the type from the rejection.
pub(crate) fn erase<R: std::error::Error + Send + Sync + 'static>(error: Error<R>) -> Error {
    error.map_rejection(|rejection| Error::Rejected(Rejection::new(rejection)))
}

/// An error of a store that was only read. Such a call has no unknown outcome, so no command is
/// named.
pub(crate) fn of_reading<R>(error: StoreError) -> Error<R> {
    error.for_command(CommandId(Uuid::nil()))
}

/// A route got a command that it was not made for: a fault of the bus.
pub(crate) fn foreign_command() -> Error {
    Error::Corrupt { what: "a command of another type came under this name".into() }
}

/// Whether the domain, the request or the caller's rights stopped a command, not the machine.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Rejected(_)
            | Error::Invalid(_)
            | Error::Unauthorized { .. }
            | Error::Replay(_)
            | Error::KeyReused { .. }
            | Error::Conflict { .. }
            | Error::UniqueTaken { .. }
            | Error::Issued { .. }
    )
}

/// Whether an error may be reported only once the key is known to be new: a refusal, or a stream
/// that cannot be read, which a command that has been done does not need any more.
pub(crate) fn waits_for_the_key(error: &Error) -> bool {
    is_refusal(error) || matches!(error, Error::Corrupt { .. })
}
