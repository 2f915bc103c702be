//! The one task that writes. It owns the write connection and lends it to transactions.
//!
//! Requests come through a bounded queue, first in, first out. The task ends when the store is
//! closed or its last handle is dropped, and with it the lock on the file; nothing else ends it: a
//! connection that fails is opened anew, a panic of a projection is an error of its command.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sequor_core::ports::Listeners;
use sequor_core::{Partition, Position, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::{mpsc, oneshot};

use crate::commit::batch::Job;
use crate::connection::{Counters, WriteConnection};
use crate::settings::SqliteSettings;
use crate::store::Counts;

/// What the writer is asked for.
#[derive(Debug)]
pub(crate) enum Request {
    /// A place in a batch.
    Commit(Box<Job>),
    /// The connection, in a transaction.
    Begin(oneshot::Sender<Result<Lease, StoreError>>),
    /// The end, after everything before it.
    Close(oneshot::Sender<()>),
}

/// The write connection on loan, in an open transaction.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) connection: WriteConnection,
    pub(crate) give_back: oneshot::Sender<GiveBack>,
}

/// How a loan ends.
#[derive(Debug)]
pub(crate) enum GiveBack {
    /// With a COMMIT, and an answer whether it worked.
    Commit(WriteConnection, oneshot::Sender<Result<(), StoreError>>),
    /// With a ROLLBACK.
    Rollback(WriteConnection),
}

/// The task's state.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) connection: Option<WriteConnection>,
    pub(crate) stats: Arc<Counts>,
    listeners: Arc<Listeners>,
    options: SqliteConnectOptions,
    requests: mpsc::Receiver<Request>,
    bounds: Bounds,
    /// How many commits the last batch answered.
    answered: usize,
    /// Held as long as the task lives; the operating system lets go of it with the process.
    _lock: File,
}

/// What bounds a batch.
#[derive(Debug)]
struct Bounds {
    commits_max: usize,
    bytes_max: usize,
    linger: Duration,
}

/// What a writer is made of.
#[derive(Debug)]
pub(crate) struct WriterParts {
    pub(crate) connection: WriteConnection,
    pub(crate) options: SqliteConnectOptions,
    pub(crate) stats: Arc<Counts>,
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) lock: File,
}

impl Writer {
    /// Starts the task. It ends with the queue.
    pub(crate) fn start(parts: WriterParts, settings: &SqliteSettings) -> mpsc::Sender<Request> {
        let (queue, requests) = mpsc::channel(settings.queue_commits_max);
        let writer = Self {
            connection: Some(parts.connection),
            stats: parts.stats,
            listeners: parts.listeners,
            options: parts.options,
            requests,
            bounds: Bounds {
                commits_max: settings.batch_commits_max,
                bytes_max: settings.batch_bytes_max,
                linger: settings.linger,
            },
            answered: 0,
            _lock: parts.lock,
        };
        tokio::spawn(writer.run());
        queue
    }

    async fn run(mut self) {
        let mut next = self.requests.recv().await;
        let mut closed = Vec::new();
        while let Some(request) = next.take() {
            match request {
                Request::Commit(job) => {
                    let (jobs, met) = self.gather(*job).await;
                    next = met;
                    self.answered = jobs.len();
                    self.commit_batch(jobs).await;
                }
                Request::Begin(answer) => self.lend(answer).await,
                Request::Close(answer) => {
                    // Who has a place in the queue is served first.
                    self.requests.close();
                    closed.push(answer);
                }
            }
            if next.is_none() {
                next = self.requests.recv().await;
            }
        }
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
        drop(self);
        for answer in closed {
            answer.send(()).ok();
        }
    }

    /// A batch: what waits already; and, if the last batch had company, what arrives within the
    /// linger, until as many are there as the last one answered. Also the request, if any, that
    /// ended it because it is no commit.
    async fn gather(&mut self, first: Job) -> (Vec<Job>, Option<Request>) {
        let mut bytes = first.bytes;
        let mut jobs = Vec::with_capacity(self.answered.max(1));
        jobs.extend(Some(first).filter(|job| job.ticket.take()));
        let mut lingering: Option<Instant> = None;
        while jobs.len() < self.bounds.commits_max && bytes < self.bounds.bytes_max {
            match self.requests.try_recv() {
                Ok(Request::Commit(job)) => {
                    bytes += job.bytes;
                    jobs.extend(Some(*job).filter(|job| job.ticket.take()));
                }
                Ok(other) => return (jobs, Some(other)),
                Err(_) => {
                    let since = *lingering.get_or_insert_with(Instant::now);
                    if jobs.len() >= self.answered || since.elapsed() >= self.bounds.linger {
                        break;
                    }
                    // Timers count in milliseconds, so the wait is made of turns for others.
                    tokio::task::yield_now().await;
                }
            }
        }
        (jobs, None)
    }

    /// Lends the connection, and waits until it is back.
    async fn lend(&mut self, answer: oneshot::Sender<Result<Lease, StoreError>>) {
        if answer.is_closed() {
            return;
        }
        let begun = match self.connection().await {
            Ok(connection) => connection.begin().await,
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            self.undo(&error).await;
            answer.send(Err(error)).ok();
            return;
        }
        let Some(connection) = self.connection.take() else {
            return;
        };
        let before = connection.counters;
        let (give_back, mut given_back) = oneshot::channel();
        let lease = Lease { connection, give_back };
        let end = match answer.send(Ok(lease)) {
            Ok(()) => (&mut given_back).await.ok(),
            // The caller has gone away meanwhile.
            Err(lease) => lease.ok().map(|lease| GiveBack::Rollback(lease.connection)),
        };
        self.stats.transaction();
        match end {
            Some(GiveBack::Commit(connection, answer)) => {
                let committed = self.end_loan(connection, before).await;
                answer.send(committed).ok();
            }
            Some(GiveBack::Rollback(mut connection)) => {
                connection.counters = before;
                if connection.rollback().await {
                    self.connection = Some(connection);
                }
            }
            None => {}
        }
    }

    async fn end_loan(
        &mut self,
        mut connection: WriteConnection,
        before: Counters,
    ) -> Result<(), StoreError> {
        let committed = connection.commit().await;
        let connection = self.connection.insert(connection);
        let after = connection.counters;
        match &committed {
            Ok(()) => self.announce(before, after),
            Err(error) => {
                connection.counters = before;
                self.undo(error).await;
            }
        }
        committed
    }

    /// Says that events have become true, if there are any.
    pub(crate) fn announce(&self, before: Counters, after: Counters) {
        if after.position > before.position {
            self.listeners.committed(Partition::ONLY, Position::new(after.position));
        }
    }

    /// The connection; opened anew if the last one was lost.
    pub(crate) async fn connection(&mut self) -> Result<&mut WriteConnection, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => WriteConnection::open(&self.options).await?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Throws the connection away; the next request opens another one.
    pub(crate) fn discard(&mut self) {
        self.connection = None;
    }
}
