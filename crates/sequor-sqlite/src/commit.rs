//! Where a decided command becomes true: it joins a batch of the writer and waits for its answer.

pub(crate) mod batch;
pub(crate) mod judge;
pub(crate) mod ledger;
pub(crate) mod look_up;
pub(crate) mod rows;
pub(crate) mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed, HistoryRequest, ReadHistory};
use sequor_core::{Commit, Invalid, Projections, Record, StoreError};
use sqlx::SqliteConnection;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::store::SqliteStore;
use crate::writer::Request;
use batch::Job;

#[async_trait]
impl CommitCommand for SqliteStore {
    async fn commit(
        &self,
        commit: Commit,
        projections: &Projections<SqliteConnection>,
    ) -> Result<Committed, StoreError> {
        check(&commit)?;
        let company = self.enter();
        if company.is_alone()
            && let Some(record) = self.stored_record(&commit).await?
        {
            self.counts().replay();
            return Ok(Committed::Known(record));
        }
        let deadline = Instant::now() + self.writer_wait_max();
        let (answer, mut answered) = oneshot::channel();
        let ticket = Ticket::default();
        let job = Job {
            bytes: bytes_of(&commit),
            commit,
            projections: projections.clone(),
            ticket: ticket.clone(),
            answer,
        };
        timeout_at(deadline, self.send(Request::Commit(Box::new(job))))
            .await
            .map_err(|_| StoreError::Busy)??;
        match timeout_at(deadline, &mut answered).await {
            Ok(answer) => answer.unwrap_or(Err(StoreError::Unknown)),
            Err(_) if ticket.take() => Err(StoreError::Busy),
            Err(_) => answered.await.unwrap_or(Err(StoreError::Unknown)),
        }
    }
}

impl SqliteStore {
    /// The record under a commit's key, read beside the writer. A lone caller's replay costs one
    /// read this way, instead of a batch of its own; in company the batch's look-up is cheaper.
    async fn stored_record(&self, commit: &Commit) -> Result<Option<Record>, StoreError> {
        let Some(key) = &commit.meta.key else { return Ok(None) };
        let request = HistoryRequest { tenant: commit.meta.tenant, key: Some(key), stream: None };
        Ok(self.history(request).await?.record)
    }
}

/// Who decides about a commit in the queue: the writer, once it has taken it, or its caller, who
/// has waited for too long. The first to take it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ticket(Arc<AtomicBool>);

impl Ticket {
    /// Whether this call was the first.
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
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

fn bytes_of(commit: &Commit) -> usize {
    let events = commit.events.iter().map(|event| event.payload.as_str().len());
    commit.payload.as_str().len() + commit.output.as_str().len() + events.sum::<usize>()
}
