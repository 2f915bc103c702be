//! A command on its way: what was asked, by whom, and how it is to be treated.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use sequor_core::{
    Command, CommandId, CommandMeta, CorrelationId, Fingerprint, IdempotencyKey, Invalid, Json,
    Limits, Meta, Name, TenantId, Timestamp, Version,
};
use uuid::Uuid;

use crate::idempotency::Mode;

/// How one call is to be treated, where it differs from the service's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What a replay of this call gets; by default what the service says.
    pub mode: Option<Mode>,
    /// The version that the caller has seen (`If-Match`). The command is decided on this version
    /// or fails with a conflict, and is never retried. Deciders only.
    pub if_version: Option<Version>,
}

impl Options {
    /// Another mode for this call.
    #[must_use]
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Decides on this version of the aggregate, or fails with a conflict.
    #[must_use]
    pub const fn if_version(mut self, version: Version) -> Self {
        self.if_version = Some(version);
        self
    }
}

/// A command on its way through the chain.
#[derive(Clone)]
pub struct Envelope {
    /// What the caller said. Middleware before tenancy may fill in the tenant; behind idempotency
    /// tenant and key must stay as they are.
    pub meta: Meta,
    /// How the call is to be treated.
    pub options: Options,
    command: Arc<dyn AnyCommand>,
    name: &'static str,
    payload: Json,
    command_id: CommandId,
    time: Timestamp,
    fingerprint: OnceLock<Fingerprint>,
    /// The tenant and key that idempotency has asked for.
    pinned: Option<(TenantId, IdempotencyKey)>,
    /// Whether it shares a transaction with other commands.
    pub(crate) shared: bool,
    /// Whether a handler issued it.
    pub(crate) issued: bool,
}

impl Envelope {
    /// Takes in a command: its JSON is made and measured here, before anybody acts on it.
    pub(crate) fn seal(
        command: Arc<dyn AnyCommand>,
        meta: Meta,
        options: Options,
        limits: &Limits,
    ) -> Result<Self, Invalid> {
        let payload = command.encode()?;
        let (bytes, max) = (payload.as_str().len(), limits.payload_bytes_max);
        if bytes > max {
            return Err(Invalid::TooLarge { what: "command", bytes, max });
        }
        Ok(Self {
            meta,
            options,
            name: command.name(),
            payload,
            command,
            command_id: CommandId(Uuid::nil()),
            time: Timestamp::from_micros(0)?,
            fingerprint: OnceLock::new(),
            pinned: None,
            shared: false,
            issued: false,
        })
    }

    /// Gives it an id and a time.
    pub(crate) fn stamp(mut self, id: Uuid, time: Timestamp) -> Self {
        (self.command_id, self.time) = (CommandId(id), time);
        self
    }

    /// Makes it part of a shared transaction.
    pub(crate) fn shared(self) -> Self {
        Self { shared: true, ..self }
    }

    /// Makes it part of the story of the command that issued it.
    pub(crate) fn issued_by(mut self, parent: &Self) -> Self {
        self.meta.actor.clone_from(&parent.meta.actor);
        self.meta.correlation_id = Some(parent.correlation_id());
        self.meta.causation_id = Some(parent.command_id.0);
        // Nobody outside waits for this answer: a key that is known means that it has been done.
        self.options.mode = Some(Mode::NoOp);
        (self.shared, self.issued) = (true, true);
        self
    }

    /// The command's stable name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The command as canonical JSON.
    #[must_use]
    pub fn payload(&self) -> &Json {
        &self.payload
    }

    /// The command, if it is a `C`.
    #[must_use]
    pub fn command<C: Command>(&self) -> Option<&C> {
        self.command.as_any().downcast_ref()
    }

    /// This execution's id.
    #[must_use]
    pub fn command_id(&self) -> CommandId {
        self.command_id
    }

    /// When the bus took it in.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// For whom.
    ///
    /// # Errors
    /// [`Invalid::TenantMissing`].
    pub fn tenant(&self) -> Result<TenantId, Invalid> {
        self.meta.tenant.ok_or(Invalid::TenantMissing)
    }

    /// What a retry under the same key must match.
    ///
    /// # Errors
    /// [`Invalid`] when a volatile field cannot be left out.
    pub fn fingerprint(&self) -> Result<Fingerprint, Invalid> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(*known);
        }
        let fingerprint = self.command.fingerprint(&self.payload)?;
        Ok(*self.fingerprint.get_or_init(|| fingerprint))
    }

    /// From here on tenant and key stay as they are: duplicates wait for this command under them.
    pub(crate) fn pin(&mut self, tenant: TenantId, key: IdempotencyKey) {
        self.pinned = Some((tenant, key));
    }

    /// Whether tenant and key are still those that were pinned.
    pub(crate) fn check_pinned(&self) -> Result<(), Invalid> {
        match &self.pinned {
            Some((tenant, key))
                if self.meta.tenant != Some(*tenant) || self.meta.key.as_ref() != Some(key) =>
            {
                Err(Invalid::MetaChanged)
            }
            _ => Ok(()),
        }
    }

    /// The command's own checks.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        self.command.validate()
    }

    /// [`Meta`] with its gaps filled, as it is stored.
    pub(crate) fn command_meta(&self) -> Result<CommandMeta, Invalid> {
        Ok(CommandMeta {
            command_id: self.command_id,
            tenant: self.tenant()?,
            key: self.meta.key.clone(),
            actor: self.meta.actor.clone(),
            correlation_id: self.correlation_id(),
            causation_id: self.meta.causation_id,
            time: self.time,
        })
    }

    /// The span that all of the command's log lines stand in.
    pub(crate) fn span(&self) -> tracing::Span {
        tracing::info_span!("command", name = self.name, id = %self.command_id)
    }

    /// The command's stable name, as it is stored.
    pub(crate) fn command_name(&self) -> Result<Name, Invalid> {
        Name::new(self.name)
    }

    fn correlation_id(&self) -> CorrelationId {
        self.meta.correlation_id.unwrap_or(CorrelationId(self.command_id.0))
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("name", &self.name)
            .field("command_id", &self.command_id)
            .field("meta", &self.meta)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A command without its type.
pub(crate) trait AnyCommand: Any + Send + Sync {
    fn name(&self) -> &'static str;
    fn encode(&self) -> Result<Json, Invalid>;
    fn fingerprint(&self, payload: &Json) -> Result<Fingerprint, Invalid>;
    fn validate(&self) -> Result<(), Invalid>;
    fn as_any(&self) -> &dyn Any;
}

impl<C: Command> AnyCommand for C {
    fn name(&self) -> &'static str {
        Command::name(self)
    }

    fn encode(&self) -> Result<Json, Invalid> {
        Command::encode(self)
    }

    fn fingerprint(&self, payload: &Json) -> Result<Fingerprint, Invalid> {
        Command::fingerprint(self, payload)
    }

    fn validate(&self) -> Result<(), Invalid> {
        Command::validate(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
