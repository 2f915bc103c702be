//! The reference store behind a fault: whatever goes in, comes out or is decided can be wrong.

mod follow;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use sequor_conformance::{Abilities, Harness, Tally};
use sequor_core::audit::{AuditReport, AuditSettings};
use sequor_core::ports::{
    Audit, CommitCommand, Committed, History, HistoryRequest, ReadHistory, ReadLog, Store,
    Submitted, Transact, Transaction,
};
use sequor_core::{
    Commit, Epoch, IdempotencyKey, Invalid, Partition, Position, ProjectionError, Projections,
    Record, StoreError, StoredEvent, StreamId, TenantId,
};
use sequor_memory::{MemoryStore, MemoryTransaction, Tables};

pub(crate) type Answer = Result<Committed, StoreError>;

/// One broken promise. Each method is a place where a store can go wrong; by default none does.
#[async_trait]
pub(crate) trait Fault: Debug + Send + Sync + 'static {
    /// What a command is taken for.
    fn taken(&self, commit: Commit) -> Commit {
        commit
    }

    /// Answers before anything is judged.
    fn answers_at_once(&self, _commit: &Commit) -> Option<Answer> {
        None
    }

    /// Commits.
    async fn commits(
        &self,
        store: &MemoryStore,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Answer {
        store.commit(commit, projections).await
    }

    /// Whether a submitted commit has no place before somebody asks for its answer.
    fn judges_when_asked(&self) -> bool {
        false
    }

    /// Whether a transaction claims keys for any tenant.
    fn claims_for_any_tenant(&self) -> bool {
        false
    }

    /// What is answered instead.
    fn answers(&self, _commit: &Commit, answer: Answer) -> Answer {
        answer
    }

    /// The key that is looked up.
    fn looks_up_key(&self, key: &IdempotencyKey) -> IdempotencyKey {
        key.clone()
    }

    /// The stream that is looked up.
    fn looks_up_stream(&self, stream: &StreamId) -> StreamId {
        stream.clone()
    }

    /// The record that is read.
    fn reads_record(
        &self,
        _of: (TenantId, &IdempotencyKey),
        found: Option<Record>,
    ) -> Option<Record> {
        found
    }

    /// The events of a stream that are read, and after which version to start.
    fn reads_events(&self, _of: &StreamId, found: Vec<StoredEvent>) -> Vec<StoredEvent> {
        found
    }

    /// The page of the log that is read.
    fn reads_log(&self, found: Vec<StoredEvent>) -> Vec<StoredEvent> {
        found
    }

    /// Whether a reader gets all events, whatever version it starts after.
    fn reads_from_the_beginning(&self) -> bool {
        false
    }

    /// What an audit says.
    fn audits(&self, report: AuditReport) -> AuditReport {
        report
    }

    /// The position that is shown.
    fn shows_position(&self, position: Position) -> Position {
        position
    }

    /// A transaction was opened.
    fn opened(&self) {}

    /// A command was written in an open transaction, as its record says.
    fn wrote(&self, _commit: &Commit, _events: &[StoredEvent]) {}

    /// A transaction ended, and whether it was committed.
    fn ended(&self, _committed: bool) {}

    /// Whether a transaction goes on after a refused write.
    fn forgives_refused_writes(&self) -> bool {
        false
    }
}

/// A store with a fault.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    store: MemoryStore,
    fault: Arc<dyn Fault>,
}

/// Gives stores with a fault, made anew for each.
#[derive(Debug)]
pub(crate) struct BrokenHarness(pub(crate) fn() -> Arc<dyn Fault>);

#[derive(Clone, Default)]
struct Tallies(HashMap<TenantId, Tally>);

#[async_trait]
impl Harness for BrokenHarness {
    type Store = Broken;

    fn abilities(&self) -> Abilities {
        Abilities::none().one_writer()
    }

    async fn fresh(&self) -> Broken {
        Broken { store: MemoryStore::new(), fault: (self.0)() }
    }

    async fn reopen(&self, store: Broken) -> Broken {
        store
    }

    async fn add(
        &self,
        tables: &mut Tables,
        tenant: TenantId,
        amount: i64,
    ) -> Result<(), ProjectionError> {
        let tally = tables.get_mut::<Tallies>().0.entry(tenant).or_default();
        tally.count += 1;
        tally.sum += amount;
        Ok(())
    }

    async fn tally(&self, broken: &Broken, tenant: TenantId) -> Tally {
        let of = |tables: &Tables| tables.get::<Tallies>()?.0.get(&tenant).copied();
        broken.store.read(of).unwrap_or_default()
    }
}

impl Broken {
    fn show_event(&self, event: StoredEvent) -> StoredEvent {
        StoredEvent { position: self.fault.shows_position(event.position), ..event }
    }

    fn show_record(&self, record: Record) -> Record {
        let position = record.position.map(|position| self.fault.shows_position(position));
        Record { position, ..record }
    }

    fn show(&self, request: &HistoryRequest<'_>, found: History) -> History {
        let events = found.events.into_iter().map(|event| self.show_event(event)).collect();
        let record = found.record.map(|record| self.show_record(record));
        History {
            record: match request.key {
                Some(key) => self.fault.reads_record((request.tenant, key), record),
                None => record,
            },
            events: match request.stream {
                Some((stream, _)) => self.fault.reads_events(stream, events),
                None => events,
            },
        }
    }
}

/// What is looked up for a request: a key, and a stream of perhaps another tenant.
struct LookUp {
    tenant: TenantId,
    key: Option<IdempotencyKey>,
    stream: Option<(StreamId, sequor_core::Version)>,
}

impl LookUp {
    fn of(fault: &dyn Fault, request: &HistoryRequest<'_>) -> Result<Self, StoreError> {
        if request.stream.is_some_and(|(stream, _)| stream.tenant != request.tenant) {
            return Err(Invalid::TenantsDiffer.into());
        }
        let after = |after| match fault.reads_from_the_beginning() {
            true => sequor_core::Version::NONE,
            false => after,
        };
        let stream = |(stream, from)| (fault.looks_up_stream(stream), after(from));
        Ok(Self {
            tenant: request.tenant,
            key: request.key.map(|key| fault.looks_up_key(key)),
            stream: request.stream.map(stream),
        })
    }

    fn record(&self) -> HistoryRequest<'_> {
        HistoryRequest { tenant: self.tenant, key: self.key.as_ref(), stream: None }
    }

    fn events(&self) -> HistoryRequest<'_> {
        HistoryRequest {
            tenant: self.stream.as_ref().map_or(self.tenant, |(stream, _)| stream.tenant),
            key: None,
            stream: self.stream.as_ref().map(|(stream, after)| (stream, *after)),
        }
    }
}

#[async_trait]
impl ReadHistory for Broken {
    async fn history(&self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        let look_up = LookUp::of(&*self.fault, &request)?;
        let record = self.store.history(look_up.record()).await?.record;
        let mut events = self.store.history(look_up.events()).await?.events;
        events.retain(|_| record.is_none());
        Ok(self.show(&request, History { record, events }))
    }
}

#[async_trait]
impl CommitCommand for Broken {
    async fn submit(
        &self,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Result<Submitted, StoreError> {
        let (broken, projections) = (self.clone(), projections.clone());
        let answer = async move { broken.judge(commit, &projections).await };
        Ok(match self.fault.judges_when_asked() {
            true => Submitted::new(answer),
            false => Submitted::ready(answer.await),
        })
    }
}

impl Broken {
    async fn judge(&self, commit: Commit, projections: &Projections<Tables>) -> Answer {
        let taken = self.fault.taken(commit.clone());
        if let Some(answer) = self.fault.answers_at_once(&taken) {
            return answer;
        }
        let answer = match self.fault.commits(&self.store, taken, projections).await {
            Ok(Committed::Fresh(record)) => Ok(Committed::Fresh(self.show_record(record))),
            Ok(Committed::Known(record)) => Ok(Committed::Known(self.show_record(record))),
            Err(error) => Err(error),
        };
        self.fault.answers(&commit, answer)
    }
}

#[async_trait]
impl ReadLog for Broken {
    async fn read_after(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let all = self.store.read_after(partition, Position::START, usize::MAX).await?;
        let shown = all.into_iter().map(|event| self.show_event(event));
        let page = shown.filter(|event| event.position > after).take(limit);
        Ok(self.fault.reads_log(page.collect()))
    }
}

#[async_trait]
impl Audit for Broken {
    async fn audit(&self, settings: AuditSettings) -> Result<AuditReport, StoreError> {
        Ok(self.fault.audits(self.store.audit(settings).await?))
    }
}

impl Store for Broken {
    fn epoch(&self) -> Epoch {
        self.store.epoch()
    }

    fn partition(&self, tenant: TenantId) -> Partition {
        self.store.partition(tenant)
    }
}

/// A transaction of a store with a fault.
pub(crate) struct BrokenTransaction {
    broken: Broken,
    /// Gone once it ended.
    open: Option<MemoryTransaction>,
    written: Vec<(Commit, Projections<Tables>)>,
    refused: bool,
}

#[async_trait]
impl Transact for Broken {
    type Connection = Tables;
    type Transaction = BrokenTransaction;

    async fn begin(&self, tenant: TenantId) -> Result<BrokenTransaction, StoreError> {
        let open = Some(self.store.begin(tenant).await?);
        self.fault.opened();
        Ok(BrokenTransaction { broken: self.clone(), open, written: Vec::new(), refused: false })
    }
}

impl BrokenTransaction {
    fn open(&mut self) -> &mut MemoryTransaction {
        self.open.as_mut().unwrap()
    }
}

#[async_trait]
impl Transaction for BrokenTransaction {
    type Connection = Tables;

    async fn claim(
        &mut self,
        tenant: TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, StoreError> {
        let looked_up = self.broken.fault.looks_up_key(key);
        let found = match self.open().claim(tenant, &looked_up).await {
            Err(StoreError::Invalid(_)) if self.broken.fault.claims_for_any_tenant() => None,
            found => found?,
        };
        let found = found.map(|record| self.broken.show_record(record));
        Ok(self.broken.fault.reads_record((tenant, key), found))
    }

    async fn history(&mut self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        let look_up = LookUp::of(&*self.broken.fault, &request)?;
        let record = self.open().history(look_up.record()).await?.record;
        let mut events = self.open().history(look_up.events()).await?.events;
        events.retain(|_| record.is_none());
        Ok(self.broken.show(&request, History { record, events }))
    }

    fn connection(&mut self) -> &mut Tables {
        self.open().connection()
    }

    fn own_rows_failed(&self, error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
        StoreError::Corrupt { what: error.to_string() }
    }

    async fn write(
        &mut self,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Result<(), StoreError> {
        let commit = self.broken.fault.taken(commit);
        let outcome = self.open().write(commit.clone(), projections).await;
        self.refused |= outcome.is_err();
        outcome?;
        let mut events = Vec::new();
        for write in &commit.streams {
            let request = HistoryRequest {
                tenant: write.stream.tenant,
                key: None,
                stream: Some((&write.stream, write.expected)),
            };
            events.extend(self.open().history(request).await?.events);
        }
        self.broken.fault.wrote(&commit, &events);
        self.written.push((commit, projections.clone()));
        Ok(())
    }

    async fn commit(mut self) -> Result<Vec<Record>, StoreError> {
        let open = self.open.take().unwrap();
        if self.refused && self.broken.fault.forgives_refused_writes() {
            drop(open);
            let mut records = Vec::new();
            for (commit, projections) in std::mem::take(&mut self.written) {
                match self.broken.store.commit(commit, &projections).await? {
                    Committed::Fresh(record) | Committed::Known(record) => records.push(record),
                }
            }
            return Ok(records);
        }
        let records = open.commit().await;
        self.broken.fault.ended(records.is_ok());
        let show = |record| self.broken.show_record(record);
        Ok(records?.into_iter().map(show).collect())
    }
}

impl Drop for BrokenTransaction {
    fn drop(&mut self) {
        if self.open.take().is_some() {
            self.broken.fault.ended(false);
        }
    }
}
