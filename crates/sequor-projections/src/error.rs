//! What can go wrong, by what the caller does next.

use std::time::Duration;

use sequor_core::{CommandId, Name, Position, StoreError, StreamId, Version};

/// Why a runner does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A name is 1 to 128 visible ASCII characters.
    #[error("a projection has no proper name: `{name}`; take 1 to 128 visible ASCII characters")]
    Name {
        /// As it was given, shortened.
        name: String,
    },
    /// Two projections have one name.
    #[error("two projections are named `{name}`; to make rows anew, raise the version of one")]
    Twice {
        /// Their name.
        name: Name,
    },
    /// Versions lie between 1 and 2,147,483,647.
    #[error("projection `{name}` has a version that is not between 1 and 2147483647")]
    Version {
        /// Its name.
        name: Name,
    },
    /// A setting is out of its range.
    #[error("`{setting}` must be {range}")]
    Setting {
        /// Which.
        setting: &'static str,
        /// What it may be.
        range: &'static str,
    },
}

/// Why a projection was not waited for until it had passed a receipt.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// It has not come so far in time. Wait again, or answer without it: the command is done.
    #[error(
        "command {command_id} did commit; after {waited:?} projection `{projection}` has come to \
         position {reached} of {wanted}{}", trouble.as_deref().map(|why| format!(", and stands \
         still: {why}")).unwrap_or_default()
    )]
    Timeout {
        /// The command of the receipt, which took effect.
        command_id: CommandId,
        /// Which projection.
        projection: Name,
        /// Where the command's last event is.
        wanted: Position,
        /// How far it has come.
        reached: Position,
        /// How long it was waited for.
        waited: Duration,
        /// Why it stands still, where it does so in this process.
        trouble: Option<String>,
    },
    /// It has passed the receipt, but not taken in what follows from it: the stream is parked.
    #[error(
        "command {command_id} did commit; projection `{projection}` has parked {stream} at version \
         {version}: {reason}"
    )]
    Parked {
        /// The command of the receipt, which took effect.
        command_id: CommandId,
        /// Which projection.
        projection: Name,
        /// Which of the command's streams.
        stream: StreamId,
        /// The last version that was taken in.
        version: Version,
        /// What the projection said of the next.
        reason: String,
    },
    /// The receipt is of another life of the store, whose positions do not compare: after a restore
    /// to an earlier moment, ask for the command's outcome by its key.
    #[error("the receipt of command {command_id} is of another life of the store")]
    OtherEpoch {
        /// The command of the receipt.
        command_id: CommandId,
    },
    /// The store could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a query after a receipt has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AfterError<E> {
    /// The projection was not waited for until it had passed the receipt.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The query itself failed.
    #[error("the query failed")]
    Query(#[source] E),
}

/// Why a parked stream was not freed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParkedError {
    /// It is not parked, or not any more.
    #[error("{stream} is not parked")]
    NotParked {
        /// Which stream.
        stream: StreamId,
    },
    /// The projection failed again. The stream stays parked; what came before is taken in.
    #[error("{stream} stays parked after version {version}: {reason}")]
    StillParked {
        /// Which stream.
        stream: StreamId,
        /// The last version that was taken in.
        version: Version,
        /// What the projection said of the next.
        reason: String,
    },
    /// The store could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An event that does not follow the one before it in its stream. A checkpoint never passes one:
/// either the log or the checkpoint is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at position {position}, {stream} has version {found} where {expected} is to come")]
pub(crate) struct Disorder {
    pub(crate) position: Position,
    pub(crate) stream: StreamId,
    pub(crate) expected: Version,
    pub(crate) found: Version,
}
