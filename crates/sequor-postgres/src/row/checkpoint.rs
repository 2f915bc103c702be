//! Rows of `checkpoints` and `projected_streams`.

use sequor_core::checkpoint::{CheckpointId, ParkedStream, Parking, StreamStanding};
use sequor_core::{Name, Partition, Position, StoreError, StreamId, TenantId, Version};
use sqlx::postgres::PgRow;

use super::columns::Columns;

/// The term of a lease; `None` when somebody else has it.
pub(crate) fn term(row: &PgRow) -> Result<Option<u64>, StoreError> {
    let columns = Columns { row, place: "checkpoints" };
    let term: Option<i64> = columns.optional(0, "term")?;
    term.map(u64::try_from).transpose().map_err(|_| columns.damaged("term", "is negative"))
}

/// How many runners are alive.
pub(crate) fn runners(row: &PgRow) -> Result<usize, StoreError> {
    let columns = Columns { row, place: "runners" };
    usize::try_from(columns.number(0, "count")?).map_err(|why| columns.damaged("count", why))
}

/// Where a checkpoint stands, and the transaction that has it.
pub(crate) fn step(row: &PgRow) -> Result<(Position, String), StoreError> {
    let columns = Columns { row, place: "checkpoints" };
    Ok((Position::new(columns.number(1, "position")?), columns.get(2, "transaction")?))
}

/// Where a checkpoint stands.
pub(crate) fn position(row: &PgRow) -> Result<Position, StoreError> {
    Columns { row, place: "checkpoints" }.number(1, "position").map(Position::new)
}

/// A partition, and how far it was read.
pub(crate) fn checkpoint(row: &PgRow) -> Result<(Partition, Position), StoreError> {
    let columns = Columns { row, place: "checkpoints" };
    Ok((partition(&columns, 0)?, Position::new(columns.number(1, "position")?)))
}

/// The place of a looked-up stream, and how far it was taken in.
pub(crate) fn wanted_standing(row: &PgRow) -> Result<(usize, StreamStanding), StoreError> {
    let columns = Columns { row, place: "projected_streams" };
    let place: i64 = columns.get(0, "place")?;
    let place = usize::try_from(place - 1).map_err(|why| columns.damaged("place", why))?;
    let version = Version::new(columns.number(3, "version")?);
    Ok((place, StreamStanding { version, parked: parking(&columns, 4)? }))
}

/// A stream that is parked.
pub(crate) fn parked_stream(
    row: &PgRow,
    projection: &Name,
    version: u32,
) -> Result<ParkedStream, StoreError> {
    let columns = Columns { row, place: "projected_streams" };
    let tenant = TenantId::new(columns.get(0, "tenant_id")?)
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
    let attempts: i32 = columns.get(at + 1, "parked_attempts")?;
    let attempts = u32::try_from(attempts).unwrap_or_default();
    let since = columns.time(at + 2, "parked_since")?;
    Ok(Some(Parking { reason, attempts, since }))
}

fn partition(columns: &Columns<'_>, at: usize) -> Result<Partition, StoreError> {
    let number: i16 = columns.get(at, "partition")?;
    let number = u16::try_from(number).map_err(|why| columns.damaged("partition", why))?;
    Ok(Partition::numbered(number))
}
