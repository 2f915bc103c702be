//! One thing that is wrong, exact to its row.

use std::fmt;

use uuid::Uuid;

use crate::checkpoint::CheckpointId;
use crate::meta::CommandId;
use crate::names::Name;
use crate::stream::{Partition, Position, StreamId, Version};
use crate::tenant::TenantId;

/// How a store's rows name the command that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandRow {
    /// By its id.
    Id(CommandId),
    /// By the number of its row.
    Number(u64),
}

/// One thing that is not as it must be, exact to the row. Printed, it is a sentence that names the
/// row's whole key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each field is the part of the row's key that it is named after")]
pub enum Finding {
    /// Several events have one position.
    PositionTwice { partition: Partition, position: Position, events: u64 },
    /// An event is in a partition that is not its tenant's.
    WrongPartition {
        stream: StreamId,
        version: Version,
        position: Position,
        partition: Partition,
        expected: Partition,
    },
    /// An event has no higher position than the event before it in its stream.
    OutOfOrder { stream: StreamId, version: Version, position: Position, before: Position },
    /// A stream lacks these versions, and has later ones.
    VersionsMissing { stream: StreamId, from: Version, to: Version },
    /// A stream has a version twice.
    VersionTwice { stream: StreamId, version: Version },
    /// The stored version of a stream is not that of its last event; `None` where there is no row,
    /// or no event.
    StreamVersion { stream: StreamId, stored: Option<Version>, last: Option<Version> },
    /// A stream says that another command has made its version than its last event does.
    StreamMaker { stream: StreamId, version: Version, stored: CommandId, maker: CommandId },
    /// An event's command is not there, or is another tenant's.
    EventWithoutCommand {
        stream: StreamId,
        version: Version,
        position: Position,
        command: CommandRow,
    },
    /// Several commands of a tenant have one id.
    CommandTwice { tenant: TenantId, command: CommandId, rows: u64 },
    /// The stored position of a command is not that of its last event; `None` without one.
    CommandPosition {
        tenant: TenantId,
        command: CommandId,
        stored: Option<Position>,
        last: Option<Position>,
    },
    /// A command remembers another version of an aggregate than it has made, or than there ever was;
    /// `None` where it does not remember the aggregate at all.
    CommandStream { command: CommandId, stream: StreamId, stored: Option<Version>, actual: Version },
    /// A key's command is not there, or is another tenant's.
    KeyWithoutCommand { tenant: TenantId, key: String, command: CommandRow, archived: bool },
    /// A key names a command that was executed under another key, or under none.
    KeyOfAnother {
        tenant: TenantId,
        key: String,
        command: CommandId,
        executed_under: Option<String>,
        archived: bool,
    },
    /// A key is there more than once: it was used again while it was in the archive.
    KeyTwice { tenant: TenantId, key: String, live: u64, archived: u64 },
    /// A command's key is nowhere: neither live nor archived, and not in a month that was dropped.
    CommandWithoutKey { tenant: TenantId, key: String, command: CommandId },
    /// The commands whose keys are in no table are not just those of the months that were dropped;
    /// which of them cannot be told.
    KeysPurged { commands: u64, purged: u64 },
    /// A claim has outlived its transaction, and nothing was written under it.
    ClaimLeft { tenant: TenantId, key: String },
    /// A reservation does not say until when its owner may work, or which owner it is.
    ReservationWithoutLease { tenant: TenantId, key: String },
    /// A value is held by an aggregate that no command has ever touched.
    HolderUnknown { holder: StreamId, scope: Name, value: String },
    /// An aggregate holds several values in one scope.
    HoldsSeveral { holder: StreamId, scope: Name, values: u64 },
    /// A value and its holder do not agree on who holds it.
    HolderDiffers { holder: StreamId, scope: Name, value: String },
    /// The next position would be one that is taken.
    PositionsBehind { drawn: Position, highest: Position },
    /// A message's command is not there, or is another tenant's.
    MessageWithoutCommand { tenant: TenantId, message: Uuid, command: CommandId },
    /// A projection's checkpoint is ahead of the log.
    CheckpointAhead { checkpoint: CheckpointId, position: Position, last: Position },
    /// A projection has taken in another version of a stream than lies up to its checkpoint (of a
    /// parked stream: less); `None` where it has never met the stream.
    ProjectedStream {
        projection: Name,
        projection_version: u32,
        stream: StreamId,
        taken: Option<Version>,
        wanted: Version,
    },
    /// A row, or the file itself, cannot be read.
    Unreadable { what: String },
}

impl fmt::Display for CommandRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "command {id}"),
            Self::Number(number) => write!(f, "command number {number}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PositionTwice { .. }
            | Self::WrongPartition { .. }
            | Self::OutOfOrder { .. }
            | Self::PositionsBehind { .. } => self.of_position(f),
            Self::VersionsMissing { .. }
            | Self::VersionTwice { .. }
            | Self::StreamVersion { .. }
            | Self::StreamMaker { .. } => self.of_stream(f),
            Self::EventWithoutCommand { .. }
            | Self::CommandTwice { .. }
            | Self::CommandPosition { .. }
            | Self::CommandStream { .. }
            | Self::MessageWithoutCommand { .. } => self.of_command(f),
            Self::KeyWithoutCommand { .. }
            | Self::KeyOfAnother { .. }
            | Self::KeyTwice { .. }
            | Self::CommandWithoutKey { .. }
            | Self::KeysPurged { .. }
            | Self::ClaimLeft { .. }
            | Self::ReservationWithoutLease { .. } => self.of_key(f),
            Self::HolderUnknown { .. } | Self::HoldsSeveral { .. } | Self::HolderDiffers { .. } => {
                self.of_unique_value(f)
            }
            Self::CheckpointAhead { .. } | Self::ProjectedStream { .. } => self.of_projection(f),
            Self::Unreadable { what } => f.write_str(what),
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "each function has the sentences of one topic")]
impl Finding {
    fn of_position(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PositionTwice { partition, position, events } => {
                let partition = partition.get();
                write!(f, "position {position} of partition {partition} is that of {events} events")
            }
            Self::WrongPartition { stream, version, position, partition, expected } => {
                let (partition, expected) = (partition.get(), expected.get());
                write!(
                    f,
                    "version {version} of {} at position {position} is in partition {partition}, and \
                     its tenant belongs to partition {expected}",
                    Whole(stream)
                )
            }
            Self::OutOfOrder { stream, version, position, before } => write!(
                f,
                "version {version} of {} has position {position}, and the version before it has \
                 {before}",
                Whole(stream)
            ),
            Self::PositionsBehind { drawn, highest } => {
                write!(f, "positions were drawn up to {drawn}, and {highest} is stored")
            }
            _ => Ok(()),
        }
    }

    fn of_stream(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VersionsMissing { stream, from, to } if from == to => {
                write!(f, "{} lacks version {from}", Whole(stream))
            }
            Self::VersionsMissing { stream, from, to } => {
                write!(f, "{} lacks the versions {from} to {to}", Whole(stream))
            }
            Self::VersionTwice { stream, version } => {
                write!(f, "{} has version {version} twice", Whole(stream))
            }
            Self::StreamVersion { stream, stored, last } => write!(
                f,
                "{} is stored at {}, and its last event has {}",
                Whole(stream),
                Maybe("version", *stored),
                Maybe("version", *last)
            ),
            Self::StreamMaker { stream, version, stored, maker } => write!(
                f,
                "version {version} of {} is stored as that of command {stored}, and its event is \
                 that of command {maker}",
                Whole(stream)
            ),
            _ => Ok(()),
        }
    }

    fn of_command(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventWithoutCommand { stream, version, position, command } => write!(
                f,
                "version {version} of {} at position {position} is of {command}, which is not there",
                Whole(stream)
            ),
            Self::CommandTwice { tenant, command, rows } => {
                write!(f, "command {command} of tenant {tenant} is there {rows} times")
            }
            Self::CommandPosition { tenant, command, stored, last } => write!(
                f,
                "command {command} of tenant {tenant} is stored with {}, and its last event has {}",
                Maybe("position", *stored),
                Maybe("position", *last)
            ),
            Self::CommandStream { command, stream, stored, actual } => write!(
                f,
                "command {command} remembers {} at {}, and it was at version {actual}",
                Whole(stream),
                Maybe("version", *stored)
            ),
            Self::MessageWithoutCommand { tenant, message, command } => write!(
                f,
                "message {message} of tenant {tenant} is of command {command}, which is not there"
            ),
            _ => Ok(()),
        }
    }

    fn of_key(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyWithoutCommand { tenant, key, command, archived } => write!(
                f,
                "the {} key `{key}` of tenant {tenant} is of {command}, which is not there",
                state(*archived)
            ),
            Self::KeyOfAnother { tenant, key, command, executed_under, archived } => {
                let state = state(*archived);
                write!(f, "the {state} key `{key}` of tenant {tenant} is of command {command}, ")?;
                match executed_under {
                    Some(other) => write!(f, "which was executed under `{other}`"),
                    None => write!(f, "which was executed without a key"),
                }
            }
            Self::KeyTwice { tenant, key, live, archived } => write!(
                f,
                "the key `{key}` of tenant {tenant} is there {live} times live and {archived} times \
                 archived"
            ),
            Self::CommandWithoutKey { tenant, key, command } => write!(
                f,
                "the key `{key}` of tenant {tenant}, of command {command}, is neither live, nor \
                 archived, nor in a month that was dropped"
            ),
            Self::KeysPurged { commands, purged } => write!(
                f,
                "the keys of {commands} commands are neither live nor archived, and they are not \
                 the {purged} keys of the months that were dropped"
            ),
            Self::ClaimLeft { tenant, key } => {
                write!(f, "the key `{key}` of tenant {tenant} is claimed, and of no command")
            }
            Self::ReservationWithoutLease { tenant, key } => {
                write!(f, "the reservation `{key}` of tenant {tenant} has no lease or no fence")
            }
            _ => Ok(()),
        }
    }

    fn of_projection(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CheckpointAhead { checkpoint, position, last } => {
                let CheckpointId { projection, version, partition } = checkpoint;
                let partition = partition.get();
                write!(
                    f,
                    "version {version} of projection `{projection}` has come to position {position} \
                     of partition {partition}, whose last is {last}"
                )
            }
            Self::ProjectedStream { projection, projection_version, stream, taken, wanted } => {
                write!(
                    f,
                    "version {projection_version} of projection `{projection}` has taken in {} of \
                     {}, and version {wanted} lies before its checkpoint",
                    Maybe("version", *taken),
                    Whole(stream)
                )
            }
            _ => Ok(()),
        }
    }

    fn of_unique_value(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HolderUnknown { holder, scope, value } => write!(
                f,
                "`{value}` in `{scope}` is held by {}, which no command has touched",
                Whole(holder)
            ),
            Self::HoldsSeveral { holder, scope, values } => {
                write!(f, "{} holds {values} values in `{scope}`", Whole(holder))
            }
            Self::HolderDiffers { holder, scope, value } => write!(
                f,
                "{} and `{value}` in `{scope}` do not agree on who holds it",
                Whole(holder)
            ),
            _ => Ok(()),
        }
    }
}

fn state(archived: bool) -> &'static str {
    if archived { "archived" } else { "live" }
}

/// A stream with its tenant.
struct Whole<'s>(&'s StreamId);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of tenant {}", self.0, self.0.tenant)
    }
}

/// A number that may not be there, and what it is.
struct Maybe<T>(&'static str, Option<T>);

impl<T: fmt::Display> fmt::Display for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.1 {
            Some(number) => write!(f, "{} {number}", self.0),
            None => write!(f, "no {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{CommandRow, Finding};
    use crate::CommandId;
    use crate::names::Name;
    use crate::stream::{AggregateId, Position, StreamId, Version};
    use crate::tenant::TenantId;

    fn stream() -> StreamId {
        let tenant = TenantId::new(Uuid::from_u128(1)).unwrap();
        StreamId {
            tenant,
            aggregate: Name::new("account").unwrap(),
            id: AggregateId::new("a").unwrap(),
        }
    }

    #[test]
    fn a_finding_is_a_sentence_that_names_its_row() {
        let stream = stream();
        let tenant = stream.tenant;
        let id = CommandId(Uuid::from_u128(2));
        let position = Position::new(9);
        let whole = "account/a of tenant 00000000-0000-0000-0000-000000000001";
        let command = "00000000-0000-0000-0000-000000000002";
        let cases = [
            (
                Finding::VersionsMissing {
                    stream: stream.clone(),
                    from: Version::new(2),
                    to: Version::new(3),
                },
                format!("{whole} lacks the versions 2 to 3"),
            ),
            (
                Finding::StreamVersion {
                    stream: stream.clone(),
                    stored: None,
                    last: Some(Version::new(1)),
                },
                format!("{whole} is stored at no version, and its last event has version 1"),
            ),
            (
                Finding::EventWithoutCommand {
                    stream,
                    version: Version::new(1),
                    position,
                    command: CommandRow::Number(7),
                },
                format!(
                    "version 1 of {whole} at position 9 is of command number 7, which is not there"
                ),
            ),
            (
                Finding::CommandWithoutKey { tenant, key: "k".into(), command: id },
                format!(
                    "the key `k` of tenant {tenant}, of command {command}, is neither live, nor \
                     archived, nor in a month that was dropped"
                ),
            ),
        ];
        for (finding, sentence) in cases {
            assert_eq!(finding.to_string(), sentence);
        }
    }
}
