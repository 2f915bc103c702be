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
use sequor_core::ports::{CommitCommand, Committed};
use sequor_core::{Commit, Invalid, Projections, StoreError};
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
        let deadline = Instant::now() + self.lock_timeout();
        let (answer, mut answered) = oneshot::channel();
        let turn = Turn::default();
        let job = Job {
            bytes: bytes_of(&commit),
            commit,
            projections: projections.clone(),
            turn: turn.clone(),
            answer,
        };
        timeout_at(deadline, self.send(Request::Commit(Box::new(job))))
            .await
            .map_err(|_| StoreError::Busy)??;
        match timeout_at(deadline, &mut answered).await {
            Ok(answer) => answer.unwrap_or(Err(StoreError::Unknown)),
            Err(_) if turn.take() => Err(StoreError::Busy),
            Err(_) => answered.await.unwrap_or(Err(StoreError::Unknown)),
        }
    }
}

/// Who decides about a commit in the queue: the writer, once it has taken it, or its caller, who
/// has waited for too long. The first to take it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn(Arc<AtomicBool>);

impl Turn {
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
