//! Rows become words of sequor here, or show as damage.

pub(crate) mod audit;
pub(crate) mod checkpoint;
pub(crate) mod columns;

use std::num::NonZeroU16;

use sequor_core::{
    AggregateId, CommandId, CommandMeta, CorrelationId, Epoch, IdempotencyKey, Invalid, Name,
    Partition, Position, Record, RecordState, StoreError, StoredEvent, StreamId, StreamVersion,
    TenantId, Version,
};
use sqlx::postgres::PgRow;

use self::columns::Columns;
use crate::log::Candidate;
use crate::open::SelfCheck;
use crate::retention::{ArchiveMonth, ArchivedKey};

/// What a row of `history.sql` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Record,
    Event,
}

// Columns of a record and of an event; records and events share the first of them.
const IS_EVENT: usize = 0;
const POSITION: usize = 1;
const NAME: usize = 2;
const COMMAND_ID: usize = 3;
const ACTOR: usize = 4;
const RECORDED_AT: usize = 5;
const STATE: usize = 6;
const FENCE: usize = 7;
const CONTENT: usize = 8;
const STREAMS: usize = 9;
const FINGERPRINT: usize = 10;
const LEASE_UNTIL: usize = 11;
// Of an event, and then of one in the log.
const VERSION: usize = 12;
const SCHEMA_VERSION: usize = 13;
const KEY: usize = 14;
const CORRELATION_ID: usize = 15;
const CAUSATION_ID: usize = 16;
const TENANT: usize = 17;
const AGGREGATE: usize = 18;
const AGGREGATE_ID: usize = 19;

pub(crate) fn kind(row: &PgRow) -> Result<Kind, StoreError> {
    let columns = Columns { row, place: "a history" };
    Ok(if columns.get(IS_EVENT, "is_event")? { Kind::Event } else { Kind::Record })
}

pub(crate) fn record(row: &PgRow, tenant: TenantId) -> Result<Record, StoreError> {
    let columns = Columns { row, place: "idempotency_keys with its row of commands" };
    let streams: &str = columns.get(STREAMS, "streams")?;
    Ok(Record {
        command_id: CommandId(columns.get(COMMAND_ID, "command_id")?),
        command_name: columns.name(NAME, "name")?,
        fingerprint: columns.fingerprint(FINGERPRINT)?,
        actor: columns.actor(ACTOR)?,
        recorded_at: columns.time(RECORDED_AT, "recorded_at")?,
        streams: stream_versions(streams, tenant).map_err(|why| columns.damaged("streams", why))?,
        position: columns.position(POSITION, "position")?,
        output: columns.json(CONTENT, "output")?,
        state: record_state(&columns)?,
    })
}

fn record_state(columns: &Columns<'_>) -> Result<RecordState, StoreError> {
    match columns.get::<i16>(STATE, "state")? {
        0 => Ok(RecordState::Completed),
        1 => Ok(RecordState::Reserved {
            lease_until: columns.time(LEASE_UNTIL, "lease_until")?,
            fence: columns.number(FENCE, "fence")?,
        }),
        2 => Ok(RecordState::Expired),
        _ => Err(columns.damaged("state", "is none of 0, 1 and 2")),
    }
}

/// An event of a stream that is known.
pub(crate) fn event(row: &PgRow, stream: &StreamId) -> Result<StoredEvent, StoreError> {
    let columns = Columns { row, place: "events with its row of commands" };
    let key: Option<&str> = columns.optional(KEY, "key")?;
    let schema_version: i32 = columns.get(SCHEMA_VERSION, "schema_version")?;
    Ok(StoredEvent {
        position: Position::new(columns.number(POSITION, "position")?),
        stream: stream.clone(),
        version: Version::new(columns.number(VERSION, "version")?),
        name: columns.name(NAME, "name")?,
        schema_version: u32::try_from(schema_version)
            .map_err(|why| columns.damaged("schema_version", why))?,
        payload: columns.json(CONTENT, "payload")?,
        meta: CommandMeta {
            command_id: CommandId(columns.get(COMMAND_ID, "command_id")?),
            tenant: stream.tenant,
            key: key
                .map(IdempotencyKey::parse)
                .transpose()
                .map_err(|why| columns.damaged("key", why))?,
            actor: columns.actor(ACTOR)?,
            correlation_id: CorrelationId(columns.get(CORRELATION_ID, "correlation_id")?),
            causation_id: columns.optional(CAUSATION_ID, "causation_id")?,
            time: columns.time(RECORDED_AT, "recorded_at")?,
        },
    })
}

/// An event of the log, with its stream.
pub(crate) fn logged_event(row: &PgRow) -> Result<StoredEvent, StoreError> {
    let columns = Columns { row, place: "events" };
    let tenant = TenantId::new(columns.get(TENANT, "tenant_id")?)
        .map_err(|why| columns.damaged("tenant_id", why))?;
    let aggregate = columns.name(AGGREGATE, "aggregate")?;
    let id = columns.aggregate_id(AGGREGATE_ID, "aggregate_id")?;
    event(row, &StreamId { tenant, aggregate, id })
}

/// What may become a mark.
pub(crate) fn candidate(row: &PgRow) -> Result<Candidate, StoreError> {
    let columns = Columns { row, place: "a candidate" };
    let position = columns.position(0, "candidate")?.unwrap_or(Position::START);
    Ok(Candidate { position, holders: columns.get(1, "holders")? })
}

/// Who holds a partition's lock.
pub(crate) fn holders(row: &PgRow) -> Result<Vec<String>, StoreError> {
    Columns { row, place: "holders" }.get(0, "holders")
}

/// How many keys a batch of the reaper has moved.
pub(crate) fn reaped(row: &PgRow) -> Result<u64, StoreError> {
    Columns { row, place: "a batch of the reaper" }.number(0, "moved")
}

/// A month of the archive.
pub(crate) fn archive_month(row: &PgRow) -> Result<ArchiveMonth, StoreError> {
    let columns = Columns { row, place: "idempotency_keys_archive" };
    Ok(ArchiveMonth {
        month: columns.get(0, "month")?,
        keys: columns.number(1, "keys")?,
        digest: columns.get(2, "digest")?,
    })
}

/// A key of the archive.
pub(crate) fn archived_key(row: &PgRow) -> Result<ArchivedKey, StoreError> {
    let columns = Columns { row, place: "idempotency_keys_archive" };
    Ok(ArchivedKey {
        tenant_id: columns.get(0, "tenant_id")?,
        key: columns.get(1, "key")?,
        command_id: columns.get(2, "command_id")?,
        claimed_at: columns.time(3, "claimed_at")?,
        archived_at: columns.time(4, "archived_at")?,
    })
}

/// What the database says about itself.
pub(crate) fn self_check(row: &PgRow) -> Result<SelfCheck, StoreError> {
    let columns = Columns { row, place: "store" };
    let partitions: i16 = columns.get(1, "partitions")?;
    Ok(SelfCheck {
        epoch: Epoch(columns.get(0, "epoch")?),
        partitions: u16::try_from(partitions)
            .ok()
            .and_then(NonZeroU16::new)
            .ok_or_else(|| columns.damaged("partitions", "is not positive"))?,
        server_version: columns.server_version(2)?,
        encoding: columns.get(3, "encoding")?,
        next_position: columns.get(4, "next_position")?,
        highest_position: columns.get(5, "highest_position")?,
        migration: columns.get(6, "migration")?,
        is_standby: columns.get(7, "is_standby")?,
        draws_in_order: columns.get(8, "draws_in_order")?,
    })
}

/// Which server this is, such as 150018, and how the database keeps its text.
pub(crate) fn server(row: &PgRow) -> Result<(u32, String), StoreError> {
    let columns = Columns { row, place: "the server's settings" };
    Ok((columns.server_version(0)?, columns.get(1, "server_encoding")?))
}

/// At which level statements run.
pub(crate) fn isolation(row: &PgRow) -> Result<String, StoreError> {
    Columns { row, place: "the server's settings" }.get(0, "default_transaction_isolation")
}

/// Which life of which server answers; `None` when it only follows another.
pub(crate) fn life(row: &PgRow) -> Result<Option<String>, StoreError> {
    let columns = Columns { row, place: "the server's life" };
    let is_following: bool = columns.get(1, "pg_is_in_recovery")?;
    Ok(if is_following { None } else { Some(columns.get(0, "life")?) })
}

/// The keys of the partitions' locks.
pub(crate) fn lock_keys(row: &PgRow) -> Result<Vec<i64>, StoreError> {
    Columns { row, place: "partitions" }.get(0, "lock_key")
}

/// A number as a column holds it.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A schema version as its column holds it.
pub(crate) fn schema(version: u32) -> i32 {
    i32::try_from(version).unwrap_or(i32::MAX)
}

/// A partition as its column holds it.
pub(crate) fn partition_number(partition: Partition) -> i16 {
    // Invariant: there are at most 1,024 partitions.
    i16::try_from(partition.get()).unwrap_or(i16::MAX)
}

/// The text of `commands.streams`, and back: `[[aggregate, id, version], …]`.
pub(crate) fn streams_text(streams: &[StreamVersion]) -> String {
    let parts: Vec<(&str, &str, u64)> = streams
        .iter()
        .map(|one| (one.stream.aggregate.as_str(), one.stream.id.as_str(), one.version.get()))
        .collect();
    serde_json::to_string(&parts).unwrap_or_default()
}

fn stream_versions(text: &str, tenant: TenantId) -> Result<Vec<StreamVersion>, Invalid> {
    let parts: Vec<(String, String, u64)> =
        serde_json::from_str(text).map_err(|error| Invalid::Json { reason: error.to_string() })?;
    let read = |(aggregate, id, version): (String, String, u64)| {
        let (aggregate, id) = (Name::new(aggregate)?, AggregateId::new(id)?);
        let stream = StreamId { tenant, aggregate, id };
        Ok(StreamVersion { stream, version: Version::new(version) })
    };
    parts.into_iter().map(read).collect()
}
