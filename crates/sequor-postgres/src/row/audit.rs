//! Rows that an audit has found, as what is wrong with them. The first column of each is how many
//! such rows there are.

use sequor_core::audit::{AuditCounts, CommandRow, Finding};
use sequor_core::checkpoint::CheckpointId;
use sequor_core::{CommandId, Name, Partition, Position, StoreError, StreamId, TenantId, Version};
use sqlx::postgres::PgRow;

use super::columns::Columns;
use crate::error::corrupt;

/// How much there is.
pub(crate) fn counts(rows: &[PgRow]) -> Result<AuditCounts, StoreError> {
    let row = rows.first().ok_or_else(|| corrupt("the counts are missing"))?;
    let columns = Columns { row, place: "the counts of an audit" };
    let count = |at| columns.number(at, "count");
    let mut counts = AuditCounts::default();
    counts.commands = count(0)?;
    counts.events = count(1)?;
    counts.streams = count(2)?;
    counts.keys = count(3)?;
    counts.keys_archived = count(4)?;
    counts.keys_purged = count(5)?;
    counts.reservations = count(6)?;
    counts.in_doubt = count(7)?;
    counts.unique_values = count(8)?;
    counts.messages = count(9)?;
    Ok(counts)
}

/// How many rows a check has found, those included that it does not show.
pub(crate) fn total(rows: &[PgRow]) -> Result<u64, StoreError> {
    let first = rows.first().map(|row| Columns { row, place: "an audit" });
    first.map_or(Ok(0), |columns| columns.number(0, "count"))
}

pub(crate) fn position_twice(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    Ok(Finding::PositionTwice {
        partition: columns.partition(1)?,
        position: columns.needed_position(2)?,
        events: columns.number(3, "count")?,
    })
}

pub(crate) fn positions_behind(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "positions" };
    Ok(Finding::PositionsBehind {
        drawn: columns.needed_position(1)?,
        highest: columns.needed_position(2)?,
    })
}

pub(crate) fn wrong_partition(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    Ok(Finding::WrongPartition {
        stream: columns.stream(1)?,
        version: columns.version(4)?,
        position: columns.needed_position(5)?,
        partition: columns.partition(6)?,
        expected: columns.partition(7)?,
    })
}

pub(crate) fn out_of_order(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    Ok(Finding::OutOfOrder {
        stream: columns.stream(1)?,
        version: columns.version(4)?,
        position: columns.needed_position(5)?,
        before: columns.needed_position(6)?,
    })
}

pub(crate) fn versions(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    let stream = columns.stream(1)?;
    let (before, version) = (columns.version(4)?, columns.version(5)?);
    if version == before {
        return Ok(Finding::VersionTwice { stream, version });
    }
    let to = Version::new(version.get().saturating_sub(1));
    Ok(Finding::VersionsMissing { stream, from: before.next(), to })
}

pub(crate) fn stream_version(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "streams" };
    Ok(Finding::StreamVersion {
        stream: columns.stream(1)?,
        stored: columns.optional_version(4)?,
        last: columns.optional_version(5)?,
    })
}

pub(crate) fn stream_maker(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "streams" };
    Ok(Finding::StreamMaker {
        stream: columns.stream(1)?,
        version: columns.version(4)?,
        stored: columns.command(5)?,
        maker: columns.command(6)?,
    })
}

pub(crate) fn checkpoint_ahead(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "checkpoints" };
    let (projection, version) = columns.release(1)?;
    let partition = columns.partition(3)?;
    Ok(Finding::CheckpointAhead {
        checkpoint: CheckpointId { projection, version, partition },
        position: columns.needed_position(4)?,
        last: columns.needed_position(5)?,
    })
}

pub(crate) fn projected_stream(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "projected_streams" };
    let (projection, projection_version) = columns.release(1)?;
    Ok(Finding::ProjectedStream {
        projection,
        projection_version,
        stream: columns.stream(3)?,
        taken: columns.optional_version(6)?,
        wanted: columns.version(7)?,
    })
}

pub(crate) fn event_without_command(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    Ok(Finding::EventWithoutCommand {
        stream: columns.stream(1)?,
        version: columns.version(4)?,
        position: columns.needed_position(5)?,
        command: CommandRow::Id(columns.command(6)?),
    })
}

pub(crate) fn command_position(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "commands" };
    Ok(Finding::CommandPosition {
        tenant: columns.tenant(1)?,
        command: columns.command(2)?,
        stored: columns.position(3, "position")?,
        last: columns.position(4, "position")?,
    })
}

pub(crate) fn command_stream(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "commands" };
    Ok(Finding::CommandStream {
        stream: columns.stream(1)?,
        command: columns.command(4)?,
        stored: columns.optional_version(5)?,
        actual: columns.version(6)?,
    })
}

pub(crate) fn message_without_command(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "outbox" };
    Ok(Finding::MessageWithoutCommand {
        tenant: columns.tenant(1)?,
        message: columns.get(2, "message_id")?,
        command: columns.command(3)?,
    })
}

/// A key without its command, or one of another command.
pub(crate) fn key(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "idempotency_keys" };
    let (tenant, key) = (columns.tenant(1)?, columns.get(2, "key")?);
    let (archived, command) = (columns.get(3, "is_archived")?, columns.command(4)?);
    if columns.get(5, "command_id")? {
        let executed_under = columns.optional(6, "key")?;
        return Ok(Finding::KeyOfAnother { tenant, key, command, executed_under, archived });
    }
    let command = CommandRow::Id(command);
    Ok(Finding::KeyWithoutCommand { tenant, key, command, archived })
}

pub(crate) fn key_twice(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "idempotency_keys_archive" };
    Ok(Finding::KeyTwice {
        tenant: columns.tenant(1)?,
        key: columns.get(2, "key")?,
        live: columns.number(3, "count")?.min(1),
        archived: columns.number(4, "count")?,
    })
}

pub(crate) fn command_without_key(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "commands" };
    Ok(Finding::CommandWithoutKey {
        tenant: columns.tenant(1)?,
        key: columns.get(2, "key")?,
        command: columns.command(3)?,
    })
}

pub(crate) fn keys_purged(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "dropped_months" };
    Ok(Finding::KeysPurged {
        commands: columns.number(1, "commands")?,
        purged: columns.number(2, "keys")?,
    })
}

pub(crate) fn claim_left(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "idempotency_keys" };
    Ok(Finding::ClaimLeft { tenant: columns.tenant(1)?, key: columns.get(2, "key")? })
}

pub(crate) fn reservation(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "idempotency_keys" };
    Ok(Finding::ReservationWithoutLease { tenant: columns.tenant(1)?, key: columns.get(2, "key")? })
}

pub(crate) fn holder_unknown(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "unique_keys" };
    Ok(Finding::HolderUnknown {
        holder: columns.stream(1)?,
        scope: columns.name(4, "scope")?,
        value: columns.get(5, "value")?,
    })
}

pub(crate) fn holds_several(row: &PgRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "unique_keys" };
    Ok(Finding::HoldsSeveral {
        holder: columns.stream(1)?,
        scope: columns.name(4, "scope")?,
        values: columns.number(5, "count")?,
    })
}

/// What several findings have columns for.
impl Columns<'_> {
    fn tenant(&self, at: usize) -> Result<TenantId, StoreError> {
        TenantId::new(self.get(at, "tenant_id")?).map_err(|why| self.damaged("tenant_id", why))
    }

    fn command(&self, at: usize) -> Result<CommandId, StoreError> {
        self.get(at, "command_id").map(CommandId)
    }

    /// Three columns: tenant, aggregate and its id.
    /// A projection's name and version.
    fn release(&self, at: usize) -> Result<(Name, u32), StoreError> {
        let version = self.get::<i32>(at + 1, "projection_version")?;
        let version =
            u32::try_from(version).map_err(|why| self.damaged("projection_version", why))?;
        Ok((self.name(at, "projection")?, version))
    }

    fn stream(&self, at: usize) -> Result<StreamId, StoreError> {
        Ok(StreamId {
            tenant: self.tenant(at)?,
            aggregate: self.name(at + 1, "aggregate")?,
            id: self.aggregate_id(at + 2, "aggregate_id")?,
        })
    }

    fn version(&self, at: usize) -> Result<Version, StoreError> {
        self.number(at, "version").map(Version::new)
    }

    fn optional_version(&self, at: usize) -> Result<Option<Version>, StoreError> {
        match self.optional::<i64>(at, "version")? {
            Some(_) => self.version(at).map(Some),
            None => Ok(None),
        }
    }

    fn needed_position(&self, at: usize) -> Result<Position, StoreError> {
        self.number(at, "position").map(Position::new)
    }

    fn partition(&self, at: usize) -> Result<Partition, StoreError> {
        let number: i16 = self.get(at, "partition")?;
        let number = u16::try_from(number).map_err(|why| self.damaged("partition", why))?;
        Ok(Partition::numbered(number))
    }
}
