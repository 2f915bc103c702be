//! The one place that knows columns: rows become words of sequor here, or show as damage.

pub(crate) mod audit;
pub(crate) mod checkpoint;

use sequor_core::{
    Actor, AggregateId, CommandId, CommandMeta, CorrelationId, Epoch, Fingerprint, IdempotencyKey,
    Invalid, Json, Name, Position, Record, RecordState, StoreError, StoredEvent, StreamId,
    StreamVersion, TenantId, Timestamp, UniqueKey, Version,
};
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};
use uuid::Uuid;

use crate::connection::Counters;
use crate::error::corrupt;

/// What a row of `history*.sql` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Record,
    Event,
}

// Columns of a record and of an event. They share their places, so that one statement yields both.
const KIND: usize = 0;
const POSITION: usize = 1;
const NAME: usize = 2;
const COMMAND_ID: usize = 3;
const ACTOR: usize = 4;
const RECORDED_AT: usize = 5;
const STATE_OR_VERSION: usize = 6;
const FENCE_OR_SCHEMA: usize = 7;
const OUTPUT_OR_PAYLOAD: usize = 8;
const STREAMS_OR_KEY: usize = 9;
const FINGERPRINT_OR_CORRELATION: usize = 10;
const LEASE_OR_CAUSATION: usize = 11;
// Behind those: of an event in the log; and of a record that was looked up with others.
const TENANT: usize = 12;
const AGGREGATE: usize = 13;
const AGGREGATE_ID: usize = 14;
const WANTED: usize = 12;

pub(crate) fn kind(row: &SqliteRow) -> Result<Kind, StoreError> {
    let columns = Columns { row, place: "a history" };
    match columns.get::<i64>(KIND, "kind")? {
        0 => Ok(Kind::Record),
        _ => Ok(Kind::Event),
    }
}

pub(crate) fn record(row: &SqliteRow, tenant: TenantId) -> Result<Record, StoreError> {
    let columns = Columns { row, place: "idempotency_keys with its row of commands" };
    let streams: &str = columns.get(STREAMS_OR_KEY, "streams")?;
    let fingerprint: Option<&[u8]> = columns.optional(FINGERPRINT_OR_CORRELATION, "fingerprint")?;
    Ok(Record {
        command_id: CommandId(columns.uuid(COMMAND_ID, "command_id")?),
        command_name: columns.name(NAME, "name")?,
        fingerprint: fingerprint
            .map(Fingerprint::from_bytes)
            .transpose()
            .map_err(|why| columns.damaged("fingerprint", why))?,
        actor: columns.actor()?,
        recorded_at: columns.time(RECORDED_AT, "recorded_at")?,
        streams: stream_versions(streams, tenant).map_err(|why| columns.damaged("streams", why))?,
        position: match columns.optional::<i64>(POSITION, "position")? {
            Some(_) => Some(Position::new(columns.number(POSITION, "position")?)),
            None => None,
        },
        output: columns.json(OUTPUT_OR_PAYLOAD, "output")?,
        state: record_state(&columns)?,
    })
}

fn record_state(columns: &Columns<'_>) -> Result<RecordState, StoreError> {
    match columns.get::<i64>(STATE_OR_VERSION, "state")? {
        0 => Ok(RecordState::Completed),
        1 => Ok(RecordState::Reserved {
            lease_until: columns.time(LEASE_OR_CAUSATION, "lease_until")?,
            fence: columns.number(FENCE_OR_SCHEMA, "fence")?,
        }),
        _ => Err(columns.damaged("state", "is neither 0 nor 1")),
    }
}

/// An event of a stream that is known.
pub(crate) fn event(row: &SqliteRow, stream: &StreamId) -> Result<StoredEvent, StoreError> {
    let columns = Columns { row, place: "events with its row of commands" };
    let key: Option<&str> = columns.optional(STREAMS_OR_KEY, "key")?;
    let schema_version: i64 = columns.get(FENCE_OR_SCHEMA, "schema_version")?;
    Ok(StoredEvent {
        position: Position::new(columns.number(POSITION, "position")?),
        stream: stream.clone(),
        version: Version::new(columns.number(STATE_OR_VERSION, "version")?),
        name: columns.name(NAME, "name")?,
        schema_version: u32::try_from(schema_version)
            .map_err(|why| columns.damaged("schema_version", why))?,
        payload: columns.json(OUTPUT_OR_PAYLOAD, "payload")?,
        meta: CommandMeta {
            command_id: CommandId(columns.uuid(COMMAND_ID, "command_id")?),
            tenant: stream.tenant,
            key: key
                .map(IdempotencyKey::parse)
                .transpose()
                .map_err(|why| columns.damaged("key", why))?,
            actor: columns.actor()?,
            correlation_id: CorrelationId(
                columns.uuid(FINGERPRINT_OR_CORRELATION, "correlation_id")?,
            ),
            causation_id: match columns.optional::<&[u8]>(LEASE_OR_CAUSATION, "causation_id")? {
                Some(_) => Some(columns.uuid(LEASE_OR_CAUSATION, "causation_id")?),
                None => None,
            },
            time: columns.time(RECORDED_AT, "recorded_at")?,
        },
    })
}

/// An event of the log, with its stream.
pub(crate) fn logged_event(row: &SqliteRow) -> Result<StoredEvent, StoreError> {
    let columns = Columns { row, place: "events" };
    let tenant = TenantId::new(columns.uuid(TENANT, "tenant_id")?)
        .map_err(|why| columns.damaged("tenant_id", why))?;
    let aggregate = columns.name(AGGREGATE, "aggregate")?;
    let id = columns.aggregate_id(AGGREGATE_ID, "aggregate_id")?;
    event(row, &StreamId { tenant, aggregate, id })
}

/// The place of a looked-up record in the list of what was wanted.
pub(crate) fn wanted_record(row: &SqliteRow) -> Result<usize, StoreError> {
    Columns { row, place: "records" }.place_in_list(WANTED)
}

/// The place of a looked-up stream, its version, and the command that made it if that was asked.
pub(crate) fn wanted_head(
    row: &SqliteRow,
) -> Result<(usize, Version, Option<CommandId>), StoreError> {
    let columns = Columns { row, place: "streams with its last row of events" };
    let version = Version::new(columns.number(1, "version")?);
    let maker = columns.optional_uuid(2, "command_id")?.map(CommandId);
    Ok((columns.place_in_list(0)?, version, maker))
}

/// The place of a looked-up value, and who holds it.
pub(crate) fn wanted_holder(
    row: &SqliteRow,
    tenant_at: impl Fn(usize) -> Option<TenantId>,
) -> Result<(usize, StreamId), StoreError> {
    let columns = Columns { row, place: "unique_keys" };
    let place = columns.place_in_list(0)?;
    let holder = StreamId {
        tenant: tenant_at(place).ok_or_else(|| columns.damaged("tenant_id", "is not wanted"))?,
        aggregate: columns.name(1, "aggregate")?,
        id: columns.aggregate_id(2, "aggregate_id")?,
    };
    Ok((place, holder))
}

/// The place of a looked-up holder, and a value that it holds.
pub(crate) fn wanted_held(row: &SqliteRow) -> Result<(usize, UniqueKey), StoreError> {
    let columns = Columns { row, place: "unique_keys" };
    let value: &str = columns.get(2, "value")?;
    let held = UniqueKey::new(columns.name(1, "scope")?, value)
        .map_err(|why| columns.damaged("value", why))?;
    Ok((columns.place_in_list(0)?, held))
}

/// The file's data version.
pub(crate) fn data_version(row: &SqliteRow) -> Result<i64, StoreError> {
    Columns { row, place: "pragma_data_version" }.get(0, "data_version")
}

/// How far positions and command numbers were drawn.
pub(crate) fn counters(row: &SqliteRow) -> Result<Counters, StoreError> {
    let columns = Columns { row, place: "sqlite_sequence" };
    let (position, number) = (columns.number(0, "events")?, columns.number(1, "commands")?);
    Ok(Counters { position, number })
}

/// The release of SQLite.
pub(crate) fn library(row: &SqliteRow) -> Result<String, StoreError> {
    Columns { row, place: "sqlite_version" }.get(0, "sqlite_version")
}

/// The store's epoch.
pub(crate) fn epoch(row: &SqliteRow) -> Result<Epoch, StoreError> {
    Columns { row, place: "store" }.uuid(0, "epoch").map(Epoch)
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

/// A row's columns, and where they come from, for errors that name the place and no data.
struct Columns<'r> {
    row: &'r SqliteRow,
    place: &'static str,
}

impl<'r> Columns<'r> {
    /// A column that must be there. The driver itself would read a missing number as 0.
    fn get<T>(&self, at: usize, column: &str) -> Result<T, StoreError>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.optional(at, column)?.ok_or_else(|| self.damaged(column, "is missing"))
    }

    /// A column that may be NULL.
    fn optional<T>(&self, at: usize, column: &str) -> Result<Option<T>, StoreError>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.row.try_get(at).map_err(|_| self.damaged(column, "has another type"))
    }

    fn number(&self, at: usize, column: &str) -> Result<u64, StoreError> {
        let number: i64 = self.get(at, column)?;
        u64::try_from(number).map_err(|_| self.damaged(column, "is negative"))
    }

    fn place_in_list(&self, at: usize) -> Result<usize, StoreError> {
        let number = self.number(at, "place")?;
        usize::try_from(number).map_err(|why| self.damaged("place", why))
    }

    fn optional_uuid(&self, at: usize, column: &str) -> Result<Option<Uuid>, StoreError> {
        let bytes: Option<&[u8]> = self.optional(at, column)?;
        let id = bytes.map(Uuid::from_slice).transpose();
        id.map_err(|_| self.damaged(column, "is not 16 bytes"))
    }

    fn uuid(&self, at: usize, column: &str) -> Result<Uuid, StoreError> {
        let bytes: &[u8] = self.get(at, column)?;
        Uuid::from_slice(bytes).map_err(|_| self.damaged(column, "is not 16 bytes"))
    }

    fn name(&self, at: usize, column: &str) -> Result<Name, StoreError> {
        let text: String = self.get(at, column)?;
        Name::new(text).map_err(|_| self.damaged(column, "is no name"))
    }

    fn aggregate_id(&self, at: usize, column: &str) -> Result<AggregateId, StoreError> {
        let text: &str = self.get(at, column)?;
        AggregateId::new(text).map_err(|why| self.damaged(column, why))
    }

    fn actor(&self) -> Result<Option<Actor>, StoreError> {
        let actor: Option<&str> = self.optional(ACTOR, "actor")?;
        actor.map(Actor::new).transpose().map_err(|why| self.damaged("actor", why))
    }

    fn time(&self, at: usize, column: &str) -> Result<Timestamp, StoreError> {
        let micros: i64 = self.get(at, column)?;
        Timestamp::from_micros(micros).map_err(|why| self.damaged(column, why))
    }

    fn json(&self, at: usize, column: &str) -> Result<Json, StoreError> {
        let text: &str = self.get(at, column)?;
        serde_json::from_str::<&serde_json::value::RawValue>(text)
            .map_err(|_| self.damaged(column, "is not JSON"))?;
        Ok(Json::from_stored(text))
    }

    /// Names the column, the table and, where the row has one, its position.
    fn damaged(&self, column: &str, why: impl std::fmt::Display) -> StoreError {
        let position = self.row.try_get::<i64, _>(POSITION).ok();
        let position = position.filter(|_| self.row.len() > LEASE_OR_CAUSATION);
        let at = position.map(|at| format!(" at position {at}")).unwrap_or_default();
        corrupt(format!("a damaged row in {}{at}: `{column}` {why}", self.place))
    }
}
