//! Rows of `checkpoints` and `projected_streams`.

use sequor_core::checkpoint::{CheckpointId, ParkedStream, Parking, StreamStanding};
use sequor_core::{Name, Partition, Position, StoreError, StreamId, TenantId, Version};
use sqlx::sqlite::SqliteRow;

use super::Columns;

/// The position of a checkpoint.
pub(crate) fn position(row: &SqliteRow) -> Result<Position, StoreError> {
    Columns { row, place: "checkpoints" }.number(0, "position").map(Position::new)
}

/// A partition, and how far it was read.
pub(crate) fn checkpoint(row: &SqliteRow) -> Result<(Partition, Position), StoreError> {
    let columns = Columns { row, place: "checkpoints" };
    Ok((partition(&columns, 0)?, Position::new(columns.number(1, "position")?)))
}

/// The place of a looked-up stream, and how far it was taken in.
pub(crate) fn wanted_standing(row: &SqliteRow) -> Result<(usize, StreamStanding), StoreError> {
    let columns = Columns { row, place: "projected_streams" };
    let version = Version::new(columns.number(1, "version")?);
    Ok((columns.place_in_list(0)?, StreamStanding { version, parked: parking(&columns, 2)? }))
}

/// A stream that is parked.
pub(crate) fn parked_stream(
    row: &SqliteRow,
    projection: &Name,
    version: u32,
) -> Result<ParkedStream, StoreError> {
    let columns = Columns { row, place: "projected_streams" };
    let tenant = TenantId::new(columns.uuid(0, "tenant_id")?)
        .map_err(|why| columns.damaged("tenant_id", why))?;
    let (aggregate, id) = (columns.name(1, "aggregate")?, columns.aggregate_id(2, "aggregate_id")?);
    let parking = parking(&columns, 4)?;
    let partition = partition(&columns, 7)?;
    Ok(ParkedStream {
        checkpoint: CheckpointId { projection: projection.clone(), version, partition },
        stream: StreamId { tenant, aggregate, id },
        version: Version::new(columns.number(3, "version")?),
        parking: parking.ok_or_else(|| columns.damaged("parked_reason", "is missing"))?,
    })
}

/// Reason, attempts and time, from a place on.
fn parking(columns: &Columns<'_>, at: usize) -> Result<Option<Parking>, StoreError> {
    let Some(reason) = columns.optional::<String>(at, "parked_reason")? else { return Ok(None) };
    let attempts = columns.number(at + 1, "parked_attempts")?;
    let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    let since = columns.time(at + 2, "parked_since")?;
    Ok(Some(Parking { reason, attempts, since }))
}

fn partition(columns: &Columns<'_>, at: usize) -> Result<Partition, StoreError> {
    let number = columns.number(at, "partition")?;
    let number = u16::try_from(number).map_err(|why| columns.damaged("partition", why))?;
    Ok(Partition::numbered(number))
}
