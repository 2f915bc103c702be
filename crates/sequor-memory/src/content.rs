//! What the store holds, and what one command adds to it.

mod audit;

use std::collections::HashMap;
use std::sync::Arc;

use sequor_core::admission::{Admission, Ledger, UniqueWrites, admit};
use sequor_core::ports::{History, HistoryRequest};
use sequor_core::{
    CommandId, CommandMeta, Commit, IdempotencyKey, Invalid, Name, NewEvent, Position, Record,
    RecordState, StoreError, StoredEvent, StreamId, StreamVersion, StreamWrite, TenantId,
    UniqueKey, Version,
};

use crate::checkpoint::Checkpoints;
use crate::tables::Tables;

/// Everything that is committed. A command row of its own would have no reader, so there is none.
#[derive(Default)]
pub(crate) struct Content {
    /// Shared, so that the map grows without moving them.
    records: HashMap<(TenantId, IdempotencyKey), Arc<Record>>,
    streams: HashMap<StreamId, Stream>,
    holders: HashMap<(TenantId, UniqueKey), StreamId>,
    /// In the order of their positions.
    log: Vec<Arc<StoredEvent>>,
    /// The last position that was drawn, committed or not.
    drawn: u64,
    tables: Arc<Tables>,
    pub(crate) checkpoints: Checkpoints,
}

#[derive(Default)]
struct Stream {
    /// Invariant: the event of version `n` is at `n - 1`.
    events: Vec<Arc<StoredEvent>>,
    held: Vec<UniqueKey>,
}

/// One command with all that follows from it, admitted and numbered.
pub(crate) struct Written {
    pub(crate) record: Arc<Record>,
    pub(crate) events: Vec<Arc<StoredEvent>>,
    tenant: TenantId,
    key: Option<IdempotencyKey>,
    unique: UniqueWrites,
}

/// What became of a commit before anything of it is true.
pub(crate) enum Judged {
    Known(Record),
    Fresh(Written),
}

/// The committed content as an open transaction sees it: with its own writes on top.
pub(crate) struct View<'a> {
    pub(crate) content: &'a Content,
    pub(crate) written: &'a [Written],
}

/// What was read: still shared, so that it can be copied when the lock is gone.
pub(crate) struct Found {
    pub(crate) record: Option<Record>,
    pub(crate) events: Vec<Arc<StoredEvent>>,
}

impl Content {
    /// Judges a commit on top of what its transaction has written, and draws its positions.
    pub(crate) fn judge(
        &mut self,
        commit: Commit,
        written: &[Written],
    ) -> Result<Judged, StoreError> {
        let view = View { content: self, written };
        let unique = match admit(&commit, &view)? {
            Admission::Known(record) => return Ok(Judged::Known(*record)),
            Admission::Fresh(unique) => unique,
        };
        let written = Written::after(self.drawn, commit, unique)?;
        self.drawn += written.events.len() as u64;
        Ok(Judged::Fresh(written))
    }

    /// Makes a command true.
    pub(crate) fn apply(&mut self, written: Written) {
        let Written { record, events, tenant, key, unique } = written;
        if let Some(key) = key {
            self.records.insert((tenant, key), record);
        }
        for event in events {
            self.stream(&event.stream).events.push(Arc::clone(&event));
            self.log.push(event);
        }
        for (stream, value) in unique.releases {
            self.stream(&stream).held.retain(|one| *one != value);
            self.holders.remove(&(tenant, value));
        }
        for (stream, value) in unique.claims {
            self.stream(&stream).held.push(value.clone());
            self.holders.insert((tenant, value), stream);
        }
    }

    pub(crate) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.tables)
    }

    pub(crate) fn replace_tables(&mut self, tables: Tables) {
        self.tables = Arc::new(tables);
    }

    /// At most `limit` events after a position.
    pub(crate) fn log_after(&self, after: Position, limit: usize) -> Vec<Arc<StoredEvent>> {
        let start = self.log.partition_point(|event| event.position <= after);
        self.log.iter().skip(start).take(limit).cloned().collect()
    }

    fn stream(&mut self, stream: &StreamId) -> &mut Stream {
        self.streams.entry(stream.clone()).or_default()
    }
}

impl Written {
    /// Numbers a commit's events after the last drawn position.
    fn after(drawn: u64, commit: Commit, unique: UniqueWrites) -> Result<Self, StoreError> {
        let Commit { meta, name, fingerprint, output, streams, events, .. } = commit;
        let events: Vec<_> = events
            .into_iter()
            .zip(drawn + 1..)
            .map(|(event, position)| stored(event, Position::new(position), &streams, &meta))
            .collect::<Result<_, _>>()?;
        let after =
            |write: StreamWrite| StreamVersion { stream: write.stream, version: write.next };
        let record = Record {
            command_id: meta.command_id,
            command_name: name,
            fingerprint,
            actor: meta.actor,
            recorded_at: meta.time,
            streams: streams.into_iter().map(after).collect(),
            position: events.last().map(|event| event.position),
            output,
            state: RecordState::Completed,
        };
        Ok(Self { record: Arc::new(record), events, tenant: meta.tenant, key: meta.key, unique })
    }
}

fn stored(
    event: NewEvent,
    position: Position,
    streams: &[StreamWrite],
    meta: &CommandMeta,
) -> Result<Arc<StoredEvent>, StoreError> {
    let write = streams.get(event.stream).ok_or(Invalid::EventWithoutStream)?;
    Ok(Arc::new(StoredEvent {
        position,
        stream: write.stream.clone(),
        version: event.version,
        name: Name::new(event.name.name)?,
        schema_version: event.name.schema_version,
        payload: event.payload,
        meta: meta.clone(),
    }))
}

impl View<'_> {
    /// Reads the record under a key and the end of a stream.
    ///
    /// # Errors
    /// [`Invalid::TenantsDiffer`] when the stream is another tenant's.
    pub(crate) fn find(&self, request: &HistoryRequest<'_>) -> Result<Found, Invalid> {
        if request.stream.is_some_and(|(stream, _)| stream.tenant != request.tenant) {
            return Err(Invalid::TenantsDiffer);
        }
        let record = request.key.and_then(|key| self.record(request.tenant, key));
        let unanswered = request.stream.filter(|_| record.is_none());
        let events = unanswered.map(|(stream, after)| self.events_after(stream, after));
        Ok(Found { record: record.cloned(), events: events.unwrap_or_default() })
    }

    fn events_after(&self, stream: &StreamId, after: Version) -> Vec<Arc<StoredEvent>> {
        let committed = self.content.streams.get(stream).map(|found| &found.events);
        let own = self.written.iter().flat_map(|written| &written.events);
        committed
            .into_iter()
            .flat_map(|events| {
                let from = usize::try_from(after.get()).unwrap_or(usize::MAX);
                events.get(from..).unwrap_or_default()
            })
            .chain(own.filter(|event| event.stream == *stream && event.version > after))
            .cloned()
            .collect()
    }
}

impl Found {
    /// Copies what was found.
    pub(crate) fn into_history(self) -> History {
        History {
            record: self.record,
            events: self.events.iter().map(|event| (**event).clone()).collect(),
        }
    }
}

impl Ledger for View<'_> {
    fn record(&self, tenant: TenantId, key: &IdempotencyKey) -> Option<&Record> {
        let same = |one: &&Written| one.tenant == tenant && one.key.as_ref() == Some(key);
        let own = self.written.iter().find(same).map(|one| &one.record);
        let committed = || self.content.records.get(&(tenant, key.clone()));
        own.or_else(committed).map(AsRef::as_ref)
    }

    fn version(&self, stream: &StreamId) -> Version {
        let own = self
            .written
            .iter()
            .rev()
            .flat_map(|written| &written.record.streams)
            .find(|after| after.stream == *stream);
        if let Some(after) = own {
            return after.version;
        }
        let committed = self.content.streams.get(stream);
        Version::new(committed.map_or(0, |found| found.events.len() as u64))
    }

    fn maker(&self, stream: &StreamId) -> Option<CommandId> {
        let mut own = self.written.iter().rev().flat_map(|written| &written.events);
        let own = own.find(|event| event.stream == *stream);
        let committed = || self.content.streams.get(stream)?.events.last();
        own.or_else(committed).map(|event| event.meta.command_id)
    }

    fn holder(&self, tenant: TenantId, unique: &UniqueKey) -> Option<&StreamId> {
        for written in self.written.iter().rev().filter(|one| one.tenant == tenant) {
            let same = |(_, value): &&(StreamId, UniqueKey)| value == unique;
            if let Some((holder, _)) = written.unique.claims.iter().find(same) {
                return Some(holder);
            }
            if written.unique.releases.iter().any(|one| same(&one)) {
                return None;
            }
        }
        self.content.holders.get(&(tenant, unique.clone()))
    }

    fn held(&self, stream: &StreamId) -> Vec<UniqueKey> {
        let committed = self.content.streams.get(stream);
        let mut held = committed.map_or_else(Vec::new, |found| found.held.clone());
        for written in self.written {
            let UniqueWrites { releases, claims } = &written.unique;
            held.retain(|one| !releases.iter().any(|(by, value)| by == stream && value == one));
            let claimed = claims.iter().filter(|(by, _)| by == stream);
            held.extend(claimed.map(|(_, value)| value.clone()));
        }
        held
    }
}
