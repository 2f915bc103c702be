//! A batch as arrays, column by column: what `commit.sql` is called with.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sequor_core::{CommandId, Commit, Invalid, StreamId, StreamWrite, UniqueChange};
use uuid::Uuid;

use crate::partitions::PartitionLock;
use crate::row;
use crate::statement::Statement;

/// Of a stream whose first command is yet to be added.
const UNTOUCHED: i64 = -1;

/// The columns of a batch. Commands and streams are named by their place, from 1.
#[derive(Debug, Default)]
pub(crate) struct BatchRows<'c> {
    /// Sorted, each once.
    lock_keys: BTreeSet<i64>,
    /// Whether it can be written as a whole, if nothing is in its way.
    is_straight: bool,
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
    /// The place of its last event, if it has any.
    last_event: Vec<Option<i32>>,
}

/// Sorted, each once: the order in which they are locked. With what the batch does to each.
#[derive(Debug, Default)]
struct Streams<'c> {
    sorted: Vec<&'c StreamId>,
    tenant: Vec<Uuid>,
    aggregate: Vec<&'c str>,
    id: Vec<&'c str>,
    /// What its first command expects, and who must have made that.
    expected: Vec<i64>,
    after: Vec<Option<Uuid>>,
    /// What it will be if all succeed, and who makes that; nil where it is only looked at.
    next: Vec<i64>,
    maker: Vec<Uuid>,
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
        let streams = Streams::of(sorted);
        let mut rows = Self { lock_keys, is_straight: true, streams, ..Self::default() };
        for (place, (commit, lock)) in (1..).zip(commits) {
            rows.commands.append(commit, *lock);
            rows.append_writes(place, commit);
            rows.append_events(place, commit)?;
            rows.commands.last_event.push(rows.events.last_of(commit));
        }
        rows.is_straight &= rows.streams.next.iter().all(|next| *next > 0);
        Ok(rows)
    }

    /// The streams in the order of their places.
    pub(crate) fn streams(&self) -> &[&'c StreamId] {
        &self.streams.sorted
    }

    fn append_writes(&mut self, command: i32, commit: &'c Commit) {
        for write in &commit.streams {
            let stream = self.streams.place_of(&write.stream);
            let follows = self.streams.follow(stream, write, commit.meta.command_id);
            self.is_straight &= follows && write.unique.is_empty();
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
        let Self { lock_keys, is_straight, commands, streams, writes, events, changes } = self;
        statement
            .bind(is_straight)
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
            .bind(commands.last_event)
            .bind(streams.tenant)
            .bind(streams.aggregate)
            .bind(streams.id)
            .bind(streams.expected)
            .bind(streams.after)
            .bind(streams.next)
            .bind(streams.maker)
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
            expected: vec![UNTOUCHED; sorted.len()],
            after: vec![None; sorted.len()],
            next: vec![UNTOUCHED; sorted.len()],
            maker: vec![Uuid::nil(); sorted.len()],
            sorted,
        }
    }

    /// Adds what a command does to the stream at a place, and says whether it goes on from what the
    /// commands before it make of it.
    fn follow(&mut self, place: i32, write: &StreamWrite, command: CommandId) -> bool {
        let at = usize::try_from(place - 1).unwrap_or_default();
        let (expected, after) = (row::signed(write.expected.get()), write.after.map(|it| it.0));
        let (Some(next), Some(maker)) = (self.next.get_mut(at), self.maker.get_mut(at)) else {
            return false;
        };
        let is_first = *next == UNTOUCHED;
        let follows = is_first || *next == expected && after.is_none_or(|after| after == *maker);
        *next = row::signed(write.next.get());
        if write.next != write.expected {
            *maker = command.0;
        }
        if is_first
            && let (Some(first), Some(made_by)) =
                (self.expected.get_mut(at), self.after.get_mut(at))
        {
            (*first, *made_by) = (expected, after);
        }
        follows
    }

    /// Invariant: every stream of the batch is here.
    fn place_of(&self, stream: &StreamId) -> i32 {
        let place = self.sorted.binary_search(&stream).unwrap_or_default();
        i32::try_from(place + 1).unwrap_or(i32::MAX)
    }
}

impl Events<'_> {
    /// The place of a commit's last event, once they are here.
    fn last_of(&self, commit: &Commit) -> Option<i32> {
        let last = i32::try_from(self.command.len()).unwrap_or(i32::MAX);
        (!commit.events.is_empty()).then_some(last)
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
