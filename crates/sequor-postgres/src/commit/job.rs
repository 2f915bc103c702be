//! A commit on its way: what a batch is made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sequor_core::ports::Committed;
use sequor_core::{Commit, Projections, StoreError};
use sqlx::PgConnection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::partitions::PartitionLock;
use crate::writer::Writers;

/// A commit on its way.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) commit: Commit,
    pub(crate) lock: PartitionLock,
    pub(crate) projections: Projections<PgConnection>,
    pub(crate) bytes: usize,
    pub(crate) ticket: Ticket,
    /// Whether a writer has taken the ticket already, and gave the job back.
    pub(crate) is_ours: bool,
    pub(crate) answer: oneshot::Sender<Result<Committed, StoreError>>,
    /// Its room in the queue; it goes with the job.
    pub(crate) _room: OwnedSemaphorePermit,
}

impl Job {
    /// The caller may be gone; then the key will tell.
    pub(crate) fn answer(self, answer: Result<Committed, StoreError>, writers: &Writers) {
        match &answer {
            Ok(Committed::Fresh(record)) => {
                writers.counts.fresh();
                if let Some(position) = record.position {
                    writers.listeners.committed(self.lock.partition, position);
                }
            }
            Ok(Committed::Known(_)) => writers.counts.replay(),
            Err(_) => {}
        }
        self.answer.send(answer).ok();
    }
}

/// Who decides about a commit in the queue: a writer, once it has taken it, or its caller, who has
/// waited for too long. The first to take it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ticket(Arc<AtomicBool>);

impl Ticket {
    /// Whether this call was the first.
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}
