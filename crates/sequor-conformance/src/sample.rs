//! Commits of a small bank, built in one line each.

pub(crate) mod projections;

use std::sync::atomic::{AtomicU64, Ordering};

use sequor_core::commit::{CommitDraft, StreamDraft};
use sequor_core::{
    Actor, AggregateId, CommandId, CommandMeta, Commit, CorrelationId, EventName, Fingerprint,
    Json, Limits, Name, StreamId, TenantId, Timestamp, UniqueChange, UniqueKey, Version,
};
use uuid::Uuid;

/// The event of most samples.
pub(crate) const DEPOSITED: EventName = event_name("account.deposited");
/// The counting projection fails on it.
pub(crate) const DOOMED: EventName = event_name("account.doomed");
/// The counting projection panics on it.
pub(crate) const PANICKING: EventName = event_name("account.panicking");

/// A scope of unique values.
pub(crate) const EMAIL: &str = "account.email";
/// Another scope.
pub(crate) const NUMBER: &str = "account.number";

const fn event_name(name: &'static str) -> EventName {
    EventName { name, schema_version: 1 }
}

/// A tenant; equal numbers are equal tenants.
pub(crate) fn tenant(number: u8) -> TenantId {
    let id = 0x018f_2f6e_0000_7000_8000_0000_0000_0000_u128 + u128::from(number);
    TenantId::new(Uuid::from_u128(id)).unwrap()
}

/// An account of a tenant.
pub(crate) fn account(tenant: TenantId, id: &str) -> StreamId {
    StreamId { tenant, aggregate: Name::new("account").unwrap(), id: AggregateId::new(id).unwrap() }
}

/// JSON from text.
pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// A command for a tenant. Without more it reads and writes nothing.
pub(crate) fn command(tenant: TenantId) -> Sample {
    static COMMANDS: AtomicU64 = AtomicU64::new(1);
    let number = COMMANDS.fetch_add(1, Ordering::Relaxed);
    let id = Uuid::from_u128(0x018f_2f6e_1111_7000_8000_0000_0000_0000 + u128::from(number));
    let meta = CommandMeta {
        command_id: CommandId(id),
        tenant,
        key: None,
        actor: None,
        correlation_id: CorrelationId(id),
        causation_id: None,
        time: Timestamp::from_micros(1_767_225_600_000_000).unwrap(),
    };
    let draft = CommitDraft {
        meta,
        name: Name::new("account.deposit").unwrap(),
        payload: json(r#"{"amount":20}"#),
        fingerprint: None,
        output: json("null"),
        streams: Vec::new(),
        events: Vec::new(),
    };
    Sample { draft, current: 0 }
}

/// A commit being put together.
pub(crate) struct Sample {
    draft: CommitDraft,
    /// The account that events and unique values belong to.
    current: usize,
}

impl Sample {
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.draft.meta.key = Some(key.parse().unwrap());
        self
    }

    pub(crate) fn actor(mut self, actor: &str) -> Self {
        self.draft.meta.actor = Some(Actor::new(actor).unwrap());
        self
    }

    /// The time, in microseconds of the epoch.
    pub(crate) fn at(mut self, micros: i64) -> Self {
        self.draft.meta.time = Timestamp::from_micros(micros).unwrap();
        self
    }

    pub(crate) fn caused_by(mut self, correlation: u128, causation: u128) -> Self {
        self.draft.meta.correlation_id = CorrelationId(Uuid::from_u128(correlation));
        self.draft.meta.causation_id = Some(Uuid::from_u128(causation));
        self
    }

    pub(crate) fn named(mut self, name: impl Into<String>) -> Self {
        self.draft.name = Name::new(name.into()).unwrap();
        self
    }

    /// The command's payload.
    pub(crate) fn asking(mut self, payload: &Json) -> Self {
        self.draft.payload = payload.clone();
        self
    }

    /// The command's output.
    pub(crate) fn giving(mut self, output: &Json) -> Self {
        self.draft.output = output.clone();
        self
    }

    /// Takes in an account at the version that the command was decided on.
    pub(crate) fn on(self, id: &str, expected: u64) -> Self {
        let tenant = self.draft.meta.tenant;
        self.on_stream(account(tenant, id), expected)
    }

    pub(crate) fn on_stream(mut self, stream: StreamId, expected: u64) -> Self {
        self.current = self.draft.streams.len();
        self.draft.streams.push(StreamDraft {
            stream,
            expected: Version::new(expected),
            after: None,
            unique: Vec::new(),
        });
        self
    }

    /// Goes back to the account that was taken in as the `index`-th, from 0.
    pub(crate) fn back_to(mut self, index: usize) -> Self {
        self.current = index;
        self
    }

    /// Something happens to the current account.
    pub(crate) fn event(self) -> Self {
        self.event_with(DEPOSITED, &json(r#"{"amount":20}"#))
    }

    /// The same thing happens several times.
    pub(crate) fn events(self, count: usize) -> Self {
        (0..count).fold(self, |sample, _| sample.event())
    }

    pub(crate) fn event_named(self, name: EventName) -> Self {
        self.event_with(name, &json("{}"))
    }

    pub(crate) fn event_with(mut self, name: EventName, payload: &Json) -> Self {
        self.draft.events.push((self.current, name, payload.clone()));
        self
    }

    /// The current account holds a value from now on.
    pub(crate) fn hold(self, scope: &'static str, value: &str) -> Self {
        let unique = UniqueKey::new(Name::new(scope).unwrap(), value).unwrap();
        self.change(UniqueChange::Hold(unique))
    }

    /// The current account lets go of its value in a scope.
    pub(crate) fn release(self, scope: &'static str) -> Self {
        self.change(UniqueChange::Release(Name::new(scope).unwrap()))
    }

    /// The current account ends.
    pub(crate) fn release_all(self) -> Self {
        self.change(UniqueChange::ReleaseAll)
    }

    fn change(mut self, change: UniqueChange) -> Self {
        self.draft.streams[self.current].unique.push(change);
        self
    }

    /// The commit, checked as the bus checks it. With a key it gets its fingerprint.
    pub(crate) fn build(mut self) -> Commit {
        let keyed = self.draft.meta.key.is_some();
        let fingerprint = || Fingerprint::of(self.draft.name.as_str(), &self.draft.payload);
        self.draft.fingerprint = keyed.then(fingerprint);
        self.draft.check(&Limits::DEFAULT).unwrap()
    }
}
