//! Where a decided command becomes true: it joins a batch of the writers and waits for its answer.

pub(crate) mod batch;
pub(crate) mod job;
pub(crate) mod one;
pub(crate) mod rows;
pub(crate) mod verdicts;

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Submitted};
use sequor_core::{Commit, Invalid, Projections, StoreError};
use sqlx::PgConnection;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use self::job::{Job, Ticket};
use crate::store::PostgresStore;

#[async_trait]
impl CommitCommand for PostgresStore {
    async fn submit(
        &self,
        commit: Commit,
        projections: &Projections<PgConnection>,
    ) -> Result<Submitted, StoreError> {
        check(&commit)?;
        let deadline = Instant::now() + self.wait_max();
        let room = timeout_at(deadline, self.writers().room()).await;
        let room = room.map_err(|_| StoreError::Busy)??;
        let (answer, mut answered) = oneshot::channel();
        let ticket = Ticket::default();
        self.writers().submit(Job {
            lock: self.partitions().lock_of(commit.meta.tenant),
            bytes: bytes_of(&commit),
            commit,
            projections: projections.clone(),
            ticket: ticket.clone(),
            is_ours: false,
            answer,
            _room: room,
        });
        Ok(Submitted::new(async move {
            match timeout_at(deadline, &mut answered).await {
                Ok(answer) => answer.unwrap_or(Err(StoreError::Unknown)),
                Err(_) if ticket.take() => Err(StoreError::Busy),
                Err(_) => answered.await.unwrap_or(Err(StoreError::Unknown)),
            }
        }))
    }
}

/// What a commit must fulfil before it may share a batch with others.
pub(crate) fn check(commit: &Commit) -> Result<(), Invalid> {
    if commit.streams.iter().any(|write| write.stream.tenant != commit.meta.tenant) {
        return Err(Invalid::TenantsDiffer);
    }
    if commit.events.iter().any(|event| event.stream >= commit.streams.len()) {
        return Err(Invalid::EventWithoutStream);
    }
    Ok(())
}

/// What a row costs beside its JSON: many small events are a large commit, too.
const ROW_BYTES: usize = 256;

fn bytes_of(commit: &Commit) -> usize {
    let events = commit.events.iter().map(|event| event.payload.as_str().len() + ROW_BYTES);
    let rows = (1 + commit.streams.len()) * ROW_BYTES;
    rows + commit.payload.as_str().len() + commit.output.as_str().len() + events.sum::<usize>()
}
