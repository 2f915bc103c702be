//! How far a projection has come: a position in a partition, and a version in each stream.

use std::collections::HashMap;

use crate::meta::Timestamp;
use crate::names::Name;
use crate::stream::{Partition, Position, StreamId, Version};

/// Names a checkpoint: one release of one projection, in one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CheckpointId {
    /// The projection's name.
    pub projection: Name,
    /// The projection's own version.
    pub version: u32,
    /// Whose events.
    pub partition: Partition,
}

/// One release of a projection: what partitions are shared out for, among its runners.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// The projection's name.
    pub projection: Name,
    /// The projection's own version.
    pub version: u32,
}

/// The right to move a checkpoint, until somebody else has it.
///
/// Who takes a lease after another has had it gets a higher term, and from then on the lower one
/// moves nothing any more, however late its holder wakes up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Which checkpoint.
    pub checkpoint: CheckpointId,
    /// Grows with each holder.
    pub term: u64,
}

/// Who moves a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// The holder of the lease of this term: moves the checkpoint on.
    Term(u64),
    /// An operator, beside the holder: settles what is parked, and moves no position.
    Operator,
}

/// Where a checkpoint stands, and with it the streams that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Everything up to here was taken in, or is parked.
    pub position: Position,
    /// The streams that were asked for, as far as they were met before.
    pub streams: HashMap<StreamId, StreamStanding>,
}

/// How far a projection has come in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamStanding {
    /// Every event up to this version was taken in.
    pub version: Version,
    /// Why those behind it wait.
    pub parked: Option<Parking>,
}

/// Why a stream waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// What the projection said of the first event that waits.
    pub reason: String,
    /// How often that event was tried.
    pub attempts: u32,
    /// Since when.
    pub since: Timestamp,
}

/// What a step makes true, together with the rows that its projection has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The new position; `None` leaves it.
    pub position: Option<Position>,
    /// The streams that have moved, or were parked or freed, and how they stand now.
    pub streams: Vec<(StreamId, StreamStanding)>,
}

/// A stream that a projection could not take in further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedStream {
    /// Which release of which projection, and the stream's partition.
    pub checkpoint: CheckpointId,
    /// Which stream.
    pub stream: StreamId,
    /// Every event up to this version was taken in; the next one is the culprit.
    pub version: Version,
    /// What the projection said, and when.
    pub parking: Parking,
}
