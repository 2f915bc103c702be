//! What has happened: a stable name, a schema version, a JSON payload, a place.

use serde::Serialize;
use uuid::Uuid;

use crate::canonical::Json;
use crate::error::Invalid;
use crate::meta::CommandMeta;
use crate::names::Name;
use crate::stream::{Position, StreamId, Version};

pub mod evolution;

mod decoded;

pub use decoded::{Decoded, read};
pub use evolution::{Evolution, EvolutionError, Rename, Split, Step, raise, split};

/// The stable name of an event and the version of its payload's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct EventName {
    /// 1 to 128 bytes of visible ASCII.
    pub name: &'static str,
    /// From 1; grows when the payload's shape changes.
    pub schema_version: u32,
}

/// Something that has happened. Usually derived: `#[derive(Event, Serialize, Deserialize)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    note = "derive it: `#[derive(Event, Serialize, Deserialize)]`"
)]
pub trait Event: Sized + Send + Sync + 'static {
    /// Every name this type can carry.
    const NAMES: &'static [EventName];

    /// How events that were stored in earlier shapes are read.
    const EVOLUTION: Evolution<Self> = Evolution::NONE;

    /// The name of this one.
    fn name(&self) -> EventName;

    /// The payload, as canonical JSON.
    ///
    /// # Errors
    /// [`Invalid`] when a value has no JSON that could be read back (NaN, NUL, non-text keys).
    fn encode(&self) -> Result<Json, Invalid>;

    /// Reads a payload that was stored under a name of [`Event::NAMES`].
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] when the payload has another shape.
    fn decode(name: EventName, payload: &str) -> Result<Self, DecodeError>;
}

/// An event as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place in its partition.
    pub position: Position,
    /// The aggregate it happened to.
    pub stream: StreamId,
    /// Its place in its stream.
    pub version: Version,
    /// What happened.
    pub name: Name,
    /// The shape of the payload.
    pub schema_version: u32,
    /// The particulars.
    pub payload: Json,
    /// The command that made it happen.
    pub meta: CommandMeta,
}

impl StoredEvent {
    /// Names this event for ever and everywhere: a UUIDv5 of tenant, stream and version.
    #[must_use]
    pub fn id(&self) -> Uuid {
        let StreamId { tenant, aggregate, id } = &self.stream;
        let place = format!("{aggregate}\n{id}\n{}", self.version);
        Uuid::new_v5(tenant.as_uuid(), place.as_bytes())
    }

    /// Reads the event as one of `E`, brought up to today's shape.
    ///
    /// # Errors
    /// As [`StoredEvent::decode_all`], and [`DecodeError::NotOne`] where the type declares that this
    /// event is read as none or as several.
    pub fn decode<E: Event>(&self) -> Result<E, DecodeError> {
        let mut events = self.decode_all()?;
        let count = events.len();
        match events.next() {
            Some(event) if count == 1 => Ok(event),
            Some(_) | None => Err(DecodeError::NotOne { name: self.name.clone(), count }),
        }
    }

    /// Reads the event as what it is today: one of `E`, none where `E` skips it, several where `E`
    /// splits it. The place in the stream stays one, whatever it is read as.
    ///
    /// # Errors
    /// [`DecodeError`] when the name is unknown to `E`, no steps lead from its schema version to
    /// this build's, or the payload has another shape.
    pub fn decode_all<E: Event>(&self) -> Result<Decoded<E>, DecodeError> {
        read(&self.name, self.schema_version, &self.payload)
    }
}

/// Why a stored event cannot be read. The event itself stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No event of the aggregate carries this name.
    #[error("no event is called `{name}` here: was it renamed without keeping its name?")]
    UnknownName {
        /// As stored.
        name: Name,
    },
    /// The payload was written by another version of the event, and no steps lead to this build's.
    #[error("event `{name}` is stored with schema {stored}, this build knows schema {known}")]
    OtherSchema {
        /// As stored.
        name: Name,
        /// As stored.
        stored: u32,
        /// What this build can read.
        known: u32,
    },
    /// The event is read as none or as several.
    #[error("event `{name}` is read as {count} events: take `decode_all`")]
    NotOne {
        /// As stored.
        name: Name,
        /// How many.
        count: usize,
    },
    /// The payload has another shape.
    #[error("the payload of event `{name}` cannot be read: {reason}")]
    Malformed {
        /// As stored.
        name: &'static str,
        /// What the reader said: type and place, without the texts it met.
        reason: String,
    },
}
