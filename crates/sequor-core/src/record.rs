//! What a store remembers of a command under its key.

use crate::canonical::Json;
use crate::fingerprint::Fingerprint;
use crate::meta::{Actor, CommandId, Timestamp};
use crate::names::Name;
use crate::stream::{Position, StreamId, Version};

/// The recorded outcome of a command: what a replay answers with, and what
/// `CommandService::outcome` returns so that a caller can query a projection for the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The first command under the key.
    pub command_id: CommandId,
    /// Its stable name.
    pub command_name: Name,
    /// What a retry must match; `None` for a command without a key.
    pub fingerprint: Option<Fingerprint>,
    /// Who asked first.
    pub actor: Option<Actor>,
    /// When it was taken in.
    pub recorded_at: Timestamp,
    /// The aggregates that it wrote or read, with their versions right after it.
    pub streams: Vec<StreamVersion>,
    /// The position of its last event; `None` without events.
    pub position: Option<Position>,
    /// What the caller got.
    pub output: Json,
    /// How far the work has come.
    pub state: RecordState,
}

/// How far the work under a key has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordState {
    /// Committed: the record shares its transaction with all that followed.
    Completed,
    /// Its key is past its retention and stands in the archive only: it answers no replay any more,
    /// and the command does not run again until the archive lets go of it.
    Expired,
    /// Reserved by an effect that has left the database and is not back yet. No command of this
    /// release makes such a record; the bus answers `InProgress` to one that is there.
    Reserved {
        /// Until when the owner may work, in the database's time.
        lease_until: Timestamp,
        /// Grows with each owner; an older owner can finish nothing.
        fence: u64,
    },
}

/// An aggregate's version right after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamVersion {
    /// Which aggregate.
    pub stream: StreamId,
    /// Its version after the command.
    pub version: Version,
}
