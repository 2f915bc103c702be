//! Faults in what a transaction keeps to itself, and takes with it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed, Transact, Transaction};
use sequor_core::{Commit, Name, Position, Projections, StoreError, StoredEvent, StreamId};
use sequor_memory::{MemoryStore, Tables};

use crate::broken::{Answer, Fault};

#[derive(Debug, Default)]
pub(crate) struct ShowsOpenTransactions(Mutex<Vec<StoredEvent>>);

impl Fault for ShowsOpenTransactions {
    fn wrote(&self, _: &Commit, events: &[StoredEvent]) {
        self.0.lock().unwrap().extend_from_slice(events);
    }

    fn ended(&self, _: bool) {
        self.0.lock().unwrap().clear();
    }

    fn reads_events(&self, of: &StreamId, mut found: Vec<StoredEvent>) -> Vec<StoredEvent> {
        let open = self.0.lock().unwrap();
        found.extend(open.iter().filter(|event| event.stream == *of).cloned());
        found
    }
}

#[derive(Debug, Default)]
pub(crate) struct RefusesInsteadOfWaiting(AtomicUsize);

impl Fault for RefusesInsteadOfWaiting {
    fn opened(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn ended(&self, _: bool) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn answers_at_once(&self, _: &Commit) -> Option<Answer> {
        (self.0.load(Ordering::SeqCst) > 0).then_some(Err(StoreError::Busy))
    }
}

#[derive(Debug, Default)]
pub(crate) struct ClaimsForAnyTenant;

impl Fault for ClaimsForAnyTenant {
    fn claims_for_any_tenant(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
pub(crate) struct ForgivesRefusedWrites;

impl Fault for ForgivesRefusedWrites {
    fn forgives_refused_writes(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
pub(crate) struct KeepsRowsOfFailedProjections;

#[async_trait]
impl Fault for KeepsRowsOfFailedProjections {
    async fn commits(
        &self,
        store: &MemoryStore,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Answer {
        let answer = store.commit(commit.clone(), projections).await;
        if matches!(answer, Err(StoreError::Corrupt { .. })) {
            project_alone(store, &commit, projections).await?;
        }
        answer
    }
}

/// Runs projections in a transaction that has nothing else to commit.
async fn project_alone(
    store: &MemoryStore,
    commit: &Commit,
    projections: &Projections<Tables>,
) -> Result<(), StoreError> {
    let mut transaction = store.begin(commit.meta.tenant).await?;
    for (event, position) in commit.events.iter().zip(1..) {
        let event = StoredEvent {
            position: Position::new(position),
            stream: commit.streams[event.stream].stream.clone(),
            version: event.version,
            name: Name::new(event.name.name)?,
            schema_version: event.name.schema_version,
            payload: event.payload.clone(),
            meta: commit.meta.clone(),
        };
        for projection in projections.0.iter() {
            // Its rows are kept, whatever it says.
            drop(projection.project(&event, transaction.connection()).await);
        }
    }
    transaction.commit().await.map(drop)
}

#[derive(Debug, Default)]
pub(crate) struct ProjectsAgainOnReplay;

#[async_trait]
impl Fault for ProjectsAgainOnReplay {
    async fn commits(
        &self,
        store: &MemoryStore,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Answer {
        let answer = store.commit(commit.clone(), projections).await;
        if matches!(answer, Ok(Committed::Known(_))) {
            project_alone(store, &commit, projections).await?;
        }
        answer
    }
}
