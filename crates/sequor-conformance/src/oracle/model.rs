//! What a store must answer, said in the plainest way: maps, and rules read from the design.
//!
//! Independent on purpose: nothing here is shared with what stores judge by.

use std::collections::BTreeMap;

use sequor_core::ports::Committed;
use sequor_core::{
    CommandMeta, Commit, Json, Record, RecordState, StoreError, StreamId, StreamVersion, TenantId,
    UniqueChange, Version,
};

/// (scope, value)
type Value = (String, String);

/// An event, as far as a model can know it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Happened {
    pub(super) stream: StreamId,
    pub(super) version: u64,
    pub(super) payload: Json,
    pub(super) meta: CommandMeta,
}

/// The content that a store should have.
#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) records: BTreeMap<(TenantId, String), Record>,
    pub(super) log: Vec<Happened>,
    pub(super) held: BTreeMap<StreamId, BTreeMap<String, String>>,
}

/// What may be answered.
#[derive(Debug)]
pub(super) enum Expected {
    Known(Record),
    /// The record, but for its position.
    Fresh(Record),
    /// One of these: stream, expected, actual.
    Conflict(Vec<(StreamId, Version, Version)>),
    /// One of these values, by one of its holders.
    Taken(Vec<(Value, StreamId)>),
}

impl Model {
    pub(super) fn version(&self, stream: &StreamId) -> u64 {
        self.log.iter().filter(|one| one.stream == *stream).count() as u64
    }

    /// What a store must answer to a commit.
    pub(super) fn expect(&self, commit: &Commit) -> Expected {
        if let Some(known) = self.known(commit) {
            return Expected::Known(known.clone());
        }
        let moved = commit.streams.iter().filter_map(|write| {
            let actual = Version::new(self.version(&write.stream));
            (actual != write.expected).then(|| (write.stream.clone(), write.expected, actual))
        });
        let moved: Vec<_> = moved.collect();
        if !moved.is_empty() {
            return Expected::Conflict(moved);
        }
        let clashes = held_twice(&self.held_after(commit), commit);
        if !clashes.is_empty() {
            return Expected::Taken(clashes);
        }
        Expected::Fresh(record_of(commit))
    }

    fn known(&self, commit: &Commit) -> Option<&Record> {
        let key = commit.meta.key.as_ref()?;
        self.records.get(&(commit.meta.tenant, key.as_str().to_owned()))
    }

    /// What every aggregate would hold.
    fn held_after(&self, commit: &Commit) -> BTreeMap<StreamId, BTreeMap<String, String>> {
        let mut held = self.held.clone();
        for write in &commit.streams {
            let own = held.entry(write.stream.clone()).or_default();
            for change in &write.unique {
                match change {
                    UniqueChange::Hold(unique) => {
                        own.insert(unique.scope.to_string(), unique.value.to_string());
                    }
                    UniqueChange::Release(scope) => drop(own.remove(scope.as_str())),
                    UniqueChange::ReleaseAll => own.clear(),
                }
            }
        }
        held
    }

    /// Takes in a commit that was expected to be fresh.
    pub(super) fn apply(&mut self, commit: &Commit, record: Record) {
        self.held = self.held_after(commit);
        let happened = commit.events.iter().map(|event| Happened {
            stream: commit.streams[event.stream].stream.clone(),
            version: event.version.get(),
            payload: event.payload.clone(),
            meta: commit.meta.clone(),
        });
        self.log.extend(happened);
        if let Some(key) = &commit.meta.key {
            let key = (commit.meta.tenant, key.as_str().to_owned());
            self.records.insert(key, record);
        }
    }
}

/// Values of the commit's tenant that two aggregates would hold, with each of them.
fn held_twice(
    held: &BTreeMap<StreamId, BTreeMap<String, String>>,
    commit: &Commit,
) -> Vec<(Value, StreamId)> {
    let mut holders: BTreeMap<Value, Vec<StreamId>> = BTreeMap::new();
    for (stream, values) in held.iter().filter(|(of, _)| of.tenant == commit.meta.tenant) {
        for (scope, value) in values {
            let holders = holders.entry((scope.clone(), value.clone())).or_default();
            holders.push(stream.clone());
        }
    }
    let twice = holders.into_iter().filter(|(_, holders)| holders.len() > 1);
    let each = |(value, holders): (Value, Vec<StreamId>)| {
        holders.into_iter().map(move |holder| (value.clone(), holder))
    };
    twice.flat_map(each).collect()
}

/// The record of a commit, but for its position.
pub(super) fn record_of(commit: &Commit) -> Record {
    let streams = commit.streams.iter().enumerate().map(|(index, write)| {
        let own = commit.events.iter().filter(|event| event.stream == index);
        StreamVersion {
            stream: write.stream.clone(),
            version: Version::new(write.expected.get() + own.count() as u64),
        }
    });
    Record {
        command_id: commit.meta.command_id,
        command_name: commit.name.clone(),
        fingerprint: commit.fingerprint,
        actor: commit.meta.actor.clone(),
        recorded_at: commit.meta.time,
        streams: streams.collect(),
        position: None,
        output: commit.output.clone(),
        state: RecordState::Completed,
    }
}

/// Asserts that two records are one, but for the position, which no model can know.
#[track_caller]
pub(super) fn assert_same(answered: &Record, expected: &Record) {
    let without_position = |record: &Record| Record { position: None, ..record.clone() };
    assert_eq!(without_position(answered), without_position(expected));
}

impl Expected {
    /// Asserts that an answer is among what may be answered; gives the record of a fresh one.
    #[track_caller]
    pub(super) fn assert_is(&self, answer: Result<Committed, StoreError>) -> Option<Record> {
        match (self, answer) {
            (Self::Known(known), Ok(Committed::Known(record))) => assert_eq!(record, *known),
            (Self::Fresh(expected), Ok(Committed::Fresh(record))) => {
                assert_same(&record, expected);
                return Some(record);
            }
            (_, Err(error)) => self.assert_refused(error),
            (_, Ok(answer)) => panic!("expected {self:?}, answered {answer:?}"),
        }
        None
    }

    /// Asserts that a refusal is among what may be answered.
    #[track_caller]
    pub(super) fn assert_refused(&self, error: StoreError) {
        match (self, error) {
            (Self::Conflict(moved), StoreError::Conflict { stream, expected, actual }) => {
                assert!(moved.contains(&(stream, expected, actual)), "one of {moved:?}");
            }
            (Self::Taken(taken), StoreError::UniqueTaken { scope, value, holder }) => {
                let clash = ((scope.to_string(), value), holder);
                assert!(taken.contains(&clash), "one of {taken:?}, not {clash:?}");
            }
            (_, error) => panic!("expected {self:?}, answered {error:?}"),
        }
    }
}
