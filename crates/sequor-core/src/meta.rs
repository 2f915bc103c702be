//! Who asks, for whom, under which key, because of what, and when.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Invalid;
use crate::key::IdempotencyKey;
use crate::names::is_short_text;
use crate::tenant::TenantId;

/// Names one execution of a command: a UUIDv7 that the bus gives out, so ids sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandId(pub Uuid);

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Joins everything that follows from one request; by default the first command's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CorrelationId(pub Uuid);

/// Who asks: 1 to 255 bytes of text without control characters, such as a user id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Actor(Arc<str>);

impl Actor {
    /// Takes a text as an actor.
    ///
    /// # Errors
    /// [`Invalid::Actor`] when it is empty, longer than 255 bytes, or holds a control character.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        if is_short_text(text) {
            return Ok(Self(text.into()));
        }
        Err(Invalid::Actor)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Actor {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(&text)
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> Self {
        actor.0.as_ref().to_owned()
    }
}

/// A moment in UTC, cut to microseconds when it is made, so that the first answer, a replay and
/// the stored row show the same value in every store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "DateTime<Utc>", into = "DateTime<Utc>")]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// The moment `micros` microseconds after 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// [`Invalid::Time`] when it lies outside what the calendar can express.
    pub fn from_micros(micros: i64) -> Result<Self, Invalid> {
        DateTime::from_timestamp_micros(micros).map(Self).ok_or(Invalid::Time)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_micros(&self) -> i64 {
        self.0.timestamp_micros()
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.trunc_subsecs(6))
    }
}

impl From<Timestamp> for DateTime<Utc> {
    fn from(time: Timestamp) -> Self {
        time.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
    }
}

/// What the caller says about a command. The bus adds the command id and the time.
///
/// ```
/// use sequor_core::{Meta, TenantId};
///
/// let tenant: TenantId = "018f2f6e-0000-7000-8000-000000000001".parse()?;
/// let meta = Meta::new(tenant).key("charge-42".parse()?);
/// assert_eq!(meta.tenant, Some(tenant));
/// # Ok::<(), sequor_core::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// For whom. The tenancy middleware refuses a command without one.
    pub tenant: Option<TenantId>,
    /// The caller's name for this intent; `None` skips idempotency altogether.
    pub key: Option<IdempotencyKey>,
    /// Who asks; a stored output goes to this actor only (see `ReplayAccess`).
    pub actor: Option<Actor>,
    /// The story this command is part of; by default its own command id.
    pub correlation_id: Option<CorrelationId>,
    /// The command or event that this command follows from.
    pub causation_id: Option<Uuid>,
}

impl Meta {
    /// A command for a tenant, without key and actor.
    #[must_use]
    pub fn new(tenant: TenantId) -> Self {
        Self { tenant: Some(tenant), ..Self::default() }
    }

    /// Names the intent, so that a retry takes effect once.
    #[must_use]
    pub fn key(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Says who asks.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Joins the command to a story.
    #[must_use]
    pub fn correlation(mut self, id: CorrelationId) -> Self {
        self.correlation_id = Some(id);
        self
    }

    /// Says what the command follows from.
    #[must_use]
    pub fn causation(mut self, id: Uuid) -> Self {
        self.causation_id = Some(id);
        self
    }
}

/// What is stored about a command beside its payload: [`Meta`] with its gaps filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandMeta {
    /// This execution.
    pub command_id: CommandId,
    /// For whom.
    pub tenant: TenantId,
    /// The caller's name for the intent.
    pub key: Option<IdempotencyKey>,
    /// Who asked.
    pub actor: Option<Actor>,
    /// The story it is part of.
    pub correlation_id: CorrelationId,
    /// What it follows from.
    pub causation_id: Option<Uuid>,
    /// When the bus took it in.
    pub time: Timestamp,
}
