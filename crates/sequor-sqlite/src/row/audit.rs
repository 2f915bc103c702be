//! Rows that an audit has found, as what is wrong with them. The first column of each is how many
//! such rows there are.

use sequor_core::audit::{AuditCounts, CommandRow, Finding};
use sequor_core::checkpoint::CheckpointId;
use sequor_core::{CommandId, Name, Partition, Position, StoreError, StreamId, TenantId, Version};
use sqlx::sqlite::SqliteRow;

use super::Columns;

/// How much there is.
pub(crate) fn counts(row: &SqliteRow) -> Result<AuditCounts, StoreError> {
    let columns = Columns { row, place: "the counts of an audit" };
    let count = |at| columns.number(at, "count");
    let mut counts = AuditCounts::default();
    counts.commands = count(0)?;
    counts.events = count(1)?;
    counts.streams = count(2)?;
    counts.keys = count(3)?;
    counts.reservations = count(4)?;
    counts.in_doubt = count(5)?;
    counts.unique_values = count(6)?;
    Ok(counts)
}

/// How many rows a check has found, those included that it does not show.
pub(crate) fn total(rows: &[SqliteRow]) -> Result<u64, StoreError> {
    let first = rows.first().map(|row| Columns { row, place: "an audit" });
    first.map_or(Ok(0), |columns| columns.number(0, "count"))
}

/// A line of SQLite's own check.
pub(crate) fn damage(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "the file" };
    let line: &str = columns.get(1, "integrity_check")?;
    Ok(Finding::Unreadable { what: format!("the file is damaged: {line}") })
}

pub(crate) fn positions_behind(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "sqlite_sequence" };
    Ok(Finding::PositionsBehind { drawn: columns.position(1)?, highest: columns.position(2)? })
}

pub(crate) fn out_of_order(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    Ok(Finding::OutOfOrder {
        stream: columns.stream(1)?,
        version: columns.version(4)?,
        position: columns.position(5)?,
        before: columns.position(6)?,
    })
}

pub(crate) fn versions(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    let stream = columns.stream(1)?;
    let (before, version) = (columns.version(4)?, columns.version(5)?);
    if version == before {
        return Ok(Finding::VersionTwice { stream, version });
    }
    let to = Version::new(version.get().saturating_sub(1));
    Ok(Finding::VersionsMissing { stream, from: before.next(), to })
}

pub(crate) fn stream_version(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "streams" };
    Ok(Finding::StreamVersion {
        stream: columns.stream(1)?,
        stored: columns.optional_version(4)?,
        last: columns.optional_version(5)?,
    })
}

pub(crate) fn checkpoint_ahead(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "checkpoints" };
    let (projection, version) = columns.release(1)?;
    let partition =
        Partition::numbered(u16::try_from(columns.number(3, "partition")?).unwrap_or(u16::MAX));
    Ok(Finding::CheckpointAhead {
        checkpoint: CheckpointId { projection, version, partition },
        position: columns.position(4)?,
        last: columns.position(5)?,
    })
}

pub(crate) fn projected_stream(row: &SqliteRow) -> Result<Finding, StoreError> {
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

pub(crate) fn event_without_command(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "events" };
    Ok(Finding::EventWithoutCommand {
        stream: columns.stream(1)?,
        version: columns.version(4)?,
        position: columns.position(5)?,
        command: CommandRow::Number(columns.number(6, "command")?),
    })
}

pub(crate) fn command_position(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "commands" };
    Ok(Finding::CommandPosition {
        tenant: columns.tenant(1)?,
        command: columns.command(2)?,
        stored: columns.optional_position(3)?,
        last: columns.optional_position(4)?,
    })
}

pub(crate) fn command_twice(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "commands" };
    Ok(Finding::CommandTwice {
        tenant: columns.tenant(1)?,
        command: columns.command(2)?,
        rows: columns.number(3, "count")?,
    })
}

pub(crate) fn command_stream(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "commands" };
    Ok(Finding::CommandStream {
        stream: columns.stream(1)?,
        command: columns.command(4)?,
        stored: columns.optional_version(5)?,
        actual: columns.version(6)?,
    })
}

/// A key without its command, or one of another command.
pub(crate) fn key(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "idempotency_keys" };
    let (tenant, key) = (columns.tenant(1)?, columns.get(2, "key")?);
    if columns.get::<i64>(4, "tenant_id")? == 0 {
        let command = CommandRow::Number(columns.number(3, "command")?);
        return Ok(Finding::KeyWithoutCommand { tenant, key, command, archived: false });
    }
    let executed_under = columns.optional(6, "key")?;
    let command = columns.command(5)?;
    Ok(Finding::KeyOfAnother { tenant, key, command, executed_under, archived: false })
}

pub(crate) fn command_without_key(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "commands" };
    Ok(Finding::CommandWithoutKey {
        tenant: columns.tenant(1)?,
        key: columns.get(2, "key")?,
        command: columns.command(3)?,
    })
}

pub(crate) fn reservation(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "idempotency_keys" };
    Ok(Finding::ReservationWithoutLease { tenant: columns.tenant(1)?, key: columns.get(2, "key")? })
}

pub(crate) fn holder_unknown(row: &SqliteRow) -> Result<Finding, StoreError> {
    let columns = Columns { row, place: "unique_keys" };
    Ok(Finding::HolderUnknown {
        holder: columns.stream(1)?,
        scope: columns.name(4, "scope")?,
        value: columns.get(5, "value")?,
    })
}

pub(crate) fn holds_several(row: &SqliteRow) -> Result<Finding, StoreError> {
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
        let id = self.uuid(at, "tenant_id")?;
        TenantId::new(id).map_err(|why| self.damaged("tenant_id", why))
    }

    fn command(&self, at: usize) -> Result<CommandId, StoreError> {
        self.uuid(at, "command_id").map(CommandId)
    }

    /// Three columns: tenant, aggregate and its id.
    /// A projection's name and version.
    fn release(&self, at: usize) -> Result<(Name, u32), StoreError> {
        let version = self.number(at + 1, "projection_version")?;
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

    fn position(&self, at: usize) -> Result<Position, StoreError> {
        self.number(at, "position").map(Position::new)
    }

    fn optional_position(&self, at: usize) -> Result<Option<Position>, StoreError> {
        match self.optional::<i64>(at, "position")? {
            Some(_) => self.position(at).map(Some),
            None => Ok(None),
        }
    }
}
