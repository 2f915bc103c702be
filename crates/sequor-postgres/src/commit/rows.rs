//! A batch as arrays, column by column: what `commit.sql` is called with.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sequor_core::{Commit, Invalid, StreamId, UniqueChange};
use uuid::Uuid;

use crate::partitions::PartitionLock;
use crate::row;
use crate::statement::Statement;

/// The columns of a batch. Commands and streams are named by their place, from 1.
#[derive(Debug, Default)]
pub(crate) struct BatchRows<'c> {
    /// Sorted, each once.
    lock_keys: BTreeSet<i64>,
    commands: Commands<'c>,
    streams: Streams<'c>,
    writes: Writes,
    events: Events<'c>,
    changes: Changes<'c>,
}

#[derive(Debug, Default)]
struct Commands<'c> {
    tenant: Vec<Uuid>,
    partition: Vec<i16>,
    id: Vec<Uuid>,
    key: Vec<Option<&'c str>>,
    name: Vec<&'c str>,
    payload: Vec<&'c str>,
    fingerprint: Vec<Option<&'c [u8]>>,
    output: Vec<&'c str>,
    actor: Vec<Option<&'c str>>,
    correlation: Vec<Uuid>,
    causation: Vec<Option<Uuid>>,
    recorded_at: Vec<DateTime<Utc>>,
    streams: Vec<String>,
}

/// Sorted, each once: the order in which they are locked.
#[derive(Debug, Default)]
struct Streams<'c> {
    sorted: Vec<&'c StreamId>,
    tenant: Vec<Uuid>,
    aggregate: Vec<&'c str>,
    id: Vec<&'c str>,
}

#[derive(Debug, Default)]
struct Writes {
    command: Vec<i32>,
    stream: Vec<i32>,
    expected: Vec<i64>,
    after: Vec<Option<Uuid>>,
    next: Vec<i64>,
}

#[derive(Debug, Default)]
struct Events<'c> {
    command: Vec<i32>,
    stream: Vec<i32>,
    version: Vec<i64>,
    name: Vec<&'c str>,
    schema_version: Vec<i32>,
    payload: Vec<&'c str>,
}

#[derive(Debug, Default)]
struct Changes<'c> {
    command: Vec<i32>,
    stream: Vec<i32>,
    kind: Vec<i16>,
    scope: Vec<Option<&'c str>>,
    value: Vec<Option<&'c str>>,
}

impl<'c> BatchRows<'c> {
    /// The columns of these commits, in their order.
    ///
    /// # Errors
    /// [`Invalid::EventWithoutStream`] when an event belongs to no stream of its commit.
    pub(crate) fn of(commits: &[(&'c Commit, PartitionLock)]) -> Result<Self, Invalid> {
        let sorted: BTreeSet<&StreamId> = commits
            .iter()
            .flat_map(|(commit, _)| commit.streams.iter().map(|write| &write.stream))
            .collect();
        let lock_keys = commits.iter().map(|(_, lock)| lock.key).collect();
        let mut rows = Self { lock_keys, streams: Streams::of(sorted), ..Self::default() };
        for (place, (commit, lock)) in (1..).zip(commits) {
            rows.commands.append(commit, *lock);
            rows.append_writes(place, commit);
            rows.append_events(place, commit)?;
        }
        Ok(rows)
    }

    /// The streams in the order of their places.
    pub(crate) fn streams(&self) -> &[&'c StreamId] {
        &self.streams.sorted
    }

    fn append_writes(&mut self, command: i32, commit: &'c Commit) {
        for write in &commit.streams {
            let stream = self.streams.place_of(&write.stream);
            self.writes.command.push(command);
            self.writes.stream.push(stream);
            self.writes.expected.push(row::signed(write.expected.get()));
            self.writes.after.push(write.after.map(|maker| maker.0));
            self.writes.next.push(row::signed(write.next.get()));
            for change in &write.unique {
                self.changes.append(command, stream, change);
            }
        }
    }

    fn append_events(&mut self, command: i32, commit: &'c Commit) -> Result<(), Invalid> {
        for event in &commit.events {
            let write = commit.streams.get(event.stream).ok_or(Invalid::EventWithoutStream)?;
            let events = &mut self.events;
            events.command.push(command);
            events.stream.push(self.streams.place_of(&write.stream));
            events.version.push(row::signed(event.version.get()));
            events.name.push(event.name.name);
            events.schema_version.push(row::schema(event.name.schema_version));
            events.payload.push(event.payload.as_str());
        }
        Ok(())
    }

    /// Binds everything to the statement, in the order of the function's parameters.
    pub(crate) fn bind<'q>(self, statement: Statement<'q>) -> Statement<'q>
    where
        'c: 'q,
    {
        let Self { lock_keys, commands, streams, writes, events, changes } = self;
        statement
            .bind(Vec::from_iter(lock_keys))
            .bind(commands.tenant)
            .bind(commands.partition)
            .bind(commands.id)
            .bind(commands.key)
            .bind(commands.name)
            .bind(commands.payload)
            .bind(commands.fingerprint)
            .bind(commands.output)
            .bind(commands.actor)
            .bind(commands.correlation)
            .bind(commands.causation)
            .bind(commands.recorded_at)
            .bind(commands.streams)
            .bind(streams.tenant)
            .bind(streams.aggregate)
            .bind(streams.id)
            .bind(writes.command)
            .bind(writes.stream)
            .bind(writes.expected)
            .bind(writes.after)
            .bind(writes.next)
            .bind(events.command)
            .bind(events.stream)
            .bind(events.version)
            .bind(events.name)
            .bind(events.schema_version)
            .bind(events.payload)
            .bind(changes.command)
            .bind(changes.stream)
            .bind(changes.kind)
            .bind(changes.scope)
            .bind(changes.value)
    }
}

impl<'c> Commands<'c> {
    fn append(&mut self, commit: &'c Commit, lock: PartitionLock) {
        let meta = &commit.meta;
        self.tenant.push(*meta.tenant.as_uuid());
        self.partition.push(row::partition_number(lock.partition));
        self.id.push(meta.command_id.0);
        self.key.push(meta.key.as_ref().map(|key| key.as_str()));
        self.name.push(commit.name.as_str());
        self.payload.push(commit.payload.as_str());
        self.fingerprint.push(commit.fingerprint.as_ref().map(|one| one.as_bytes().as_slice()));
        self.output.push(commit.output.as_str());
        self.actor.push(meta.actor.as_ref().map(|actor| actor.as_str()));
        self.correlation.push(meta.correlation_id.0);
        self.causation.push(meta.causation_id);
        self.recorded_at.push(meta.time.into());
        self.streams.push(row::streams_text(&commit.record(None).streams));
    }
}

impl<'c> Streams<'c> {
    fn of(sorted: BTreeSet<&'c StreamId>) -> Self {
        let sorted: Vec<&StreamId> = sorted.into_iter().collect();
        Self {
            tenant: sorted.iter().map(|stream| *stream.tenant.as_uuid()).collect(),
            aggregate: sorted.iter().map(|stream| stream.aggregate.as_str()).collect(),
            id: sorted.iter().map(|stream| stream.id.as_str()).collect(),
            sorted,
        }
    }

    /// Invariant: every stream of the batch is here.
    fn place_of(&self, stream: &StreamId) -> i32 {
        let place = self.sorted.binary_search(&stream).unwrap_or_default();
        i32::try_from(place + 1).unwrap_or(i32::MAX)
    }
}

impl<'c> Changes<'c> {
    fn append(&mut self, command: i32, stream: i32, change: &'c UniqueChange) {
        let (kind, scope, value) = match change {
            UniqueChange::Hold(unique) => (0, Some(unique.scope.as_str()), Some(&*unique.value)),
            UniqueChange::Release(scope) => (1, Some(scope.as_str()), None),
            UniqueChange::ReleaseAll => (2, None, None),
        };
        self.command.push(command);
        self.stream.push(stream);
        self.kind.push(kind);
        self.scope.push(scope);
        self.value.push(value);
    }
}
