//! Where a decided command becomes true: it takes its place in the writer's queue, and waits for its
//! answer.

pub(crate) mod batch;
pub(crate) mod judge;
pub(crate) mod ledger;
pub(crate) mod look_up;
pub(crate) mod rows;
pub(crate) mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed, HistoryRequest, ReadHistory, Submitted};
use sequor_core::{Commit, Invalid, Projections, Record, StoreError};
use sqlx::SqliteConnection;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::store::{Company, SqliteStore};
use crate::writer::Request;
use batch::Job;

#[async_trait]
impl CommitCommand for SqliteStore {
    async fn submit(
        &self,
        commit: Commit,
        projections: &Projections<SqliteConnection>,
    ) -> Result<Submitted, StoreError> {
        check(&commit)?;
        let company = self.enter();
        if company.is_alone()
            && let Some(record) = self.stored_record(&commit).await?
        {
            self.counts().replay();
            return Ok(Submitted::ready(Ok(Committed::Known(record))));
        }
        let deadline = Instant::now() + self.writer_wait_max();
        let (answer, answered) = oneshot::channel();
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
        let wait = Wait { answered, ticket, deadline, _company: company };
        Ok(Submitted::new(wait.for_answer()))
    }
}

/// The wait of a commit in the queue.
#[derive(Debug)]
struct Wait {
    answered: oneshot::Receiver<Result<Committed, StoreError>>,
    ticket: Ticket,
    deadline: Instant,
    _company: Company,
}

impl Wait {
    /// Waits until the deadline for the writer to take the commit, and then for its answer.
    async fn for_answer(mut self) -> Result<Committed, StoreError> {
        match timeout_at(self.deadline, &mut self.answered).await {
            Ok(answer) => answer.unwrap_or(Err(StoreError::Unknown)),
            Err(_) if self.ticket.take() => Err(StoreError::Busy),
            Err(_) => self.answered.await.unwrap_or(Err(StoreError::Unknown)),
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
