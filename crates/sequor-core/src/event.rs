//! What has happened: a stable name, a schema version, a JSON payload, a place.

use serde::Serialize;
use uuid::Uuid;

use crate::canonical::Json;
use crate::error::Invalid;
use crate::meta::CommandMeta;
use crate::names::Name;
use crate::stream::{Position, StreamId, Version};

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

    /// Reads the event as one of `E`.
    ///
    /// # Errors
    /// [`DecodeError`] when the name is unknown to `E`, its schema version is not this build's, or
    /// the payload has another shape.
    pub fn decode<E: Event>(&self) -> Result<E, DecodeError> {
        let name = E::NAMES
            .iter()
            .find(|known| known.name == self.name.as_str())
            .ok_or_else(|| DecodeError::UnknownName { name: self.name.clone() })?;
        if self.schema_version != name.schema_version {
            return Err(DecodeError::OtherSchema {
                name: self.name.clone(),
                stored: self.schema_version,
                known: name.schema_version,
            });
        }
        E::decode(*name, self.payload.as_str())
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
    /// The payload was written by another version of the event.
    #[error("event `{name}` is stored with schema {stored}, this build knows schema {known}")]
    OtherSchema {
        /// As stored.
        name: Name,
        /// As stored.
        stored: u32,
        /// What this build can read.
        known: u32,
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
