//! The street of a batch: look up, judge in order, write, project, commit, answer.
//!
//! A batch is a matter of speed only. If anything in it fails, it is rolled back and each of its
//! commits goes alone, so that nobody suffers from a neighbour.

use std::sync::Arc;

use sequor_core::ports::Committed;
use sequor_core::{Commit, Projections, StoreError};
use sqlx::SqliteConnection;
use tokio::sync::oneshot;

use super::Ticket;
use super::judge::{Judged, Numbered, judge, stored_events};
use super::ledger::BatchLedger;
use super::look_up::look_up;
use super::write::{WriteFailure, write_rows, write_whole};
use crate::connection::WriteConnection;
use crate::project::project_inline;
use crate::store::Counts;
use crate::writer::Writer;

/// A commit on its way through the writer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) commit: Commit,
    pub(crate) projections: Projections<SqliteConnection>,
    pub(crate) bytes: usize,
    pub(crate) ticket: Ticket,
    pub(crate) answer: oneshot::Sender<Result<Committed, StoreError>>,
}

/// A commit with what was judged about it.
type Verdict = (Job, Judged);

impl Job {
    /// The caller may be gone; then the key will tell.
    fn answer(self, answer: Result<Committed, StoreError>) {
        self.answer.send(answer).ok();
    }
}

impl Writer {
    /// Commits what is there, together if that works, else each alone.
    pub(crate) async fn commit_batch(&mut self, jobs: Vec<Job>) {
        self.stats.batch(jobs.len());
        for job in self.commit_together(jobs).await {
            self.stats.alone();
            let answer = self.commit_alone(&job).await;
            job.answer(answer);
        }
    }

    /// One transaction for all. Gives back whom it could not answer.
    async fn commit_together(&mut self, jobs: Vec<Job>) -> Vec<Job> {
        let stats = Arc::clone(&self.stats);
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(error) => return refuse(jobs, &error),
        };
        let commits = jobs.iter().map(|job| &job.commit);
        let mut ledger = match look_up(commits, connection.sqlite()).await {
            Ok(ledger) => ledger,
            Err(StoreError::Corrupt { .. }) if jobs.len() > 1 => return jobs,
            Err(error) => {
                self.discard();
                return refuse(jobs, &error);
            }
        };
        let before = connection.counters;
        let (known, pending) = judge_all(jobs, &mut ledger, connection);
        answer_all(known, &stats);
        if pending.is_empty() {
            return Vec::new();
        }
        let written = write(&pending, &ledger, connection).await;
        let after = connection.counters;
        if written.is_err() {
            connection.counters = before;
        }
        stats.transaction();
        match written {
            Ok(()) => {
                self.announce(before, after);
                answer_all(pending, &stats);
                Vec::new()
            }
            Err(failure) => {
                self.undo(&failure.error).await;
                if failure.is_stale {
                    // Somebody else has written: the counters are read anew with the connection.
                    self.discard();
                }
                give_back(pending, failure)
            }
        }
    }

    /// A transaction of its own, judged under the write lock.
    async fn commit_alone(&mut self, job: &Job) -> Result<Committed, StoreError> {
        let connection = self.connection().await?;
        let before = connection.counters;
        let answer = commit_one(job, connection).await;
        let after = connection.counters;
        match &answer {
            Ok(Committed::Fresh(_)) => {
                self.announce(before, after);
                self.stats.fresh();
            }
            Ok(Committed::Known(_)) => self.stats.replay(),
            Err(error) => {
                connection.counters = before;
                self.undo(error).await;
            }
        }
        self.stats.transaction();
        answer
    }

    /// Ends what is open after a failure. A connection that may be at fault is thrown away.
    pub(crate) async fn undo(&mut self, error: &StoreError) {
        let healthy = !matches!(error, StoreError::Unavailable(_) | StoreError::Unknown);
        let undone = match &mut self.connection {
            Some(connection) if healthy => connection.rollback().await,
            _ => false,
        };
        if !undone {
            self.discard();
        }
    }
}

async fn commit_one(job: &Job, connection: &mut WriteConnection) -> Result<Committed, StoreError> {
    connection.begin().await?;
    let mut ledger = look_up(std::iter::once(&job.commit), connection.sqlite()).await?;
    let numbered = match judge(&job.commit, &mut ledger, &mut connection.counters) {
        Judged::Refused(error) => return Err(error),
        Judged::Fresh(numbered) => numbered,
        Judged::Known(record) => {
            connection.rollback().await;
            return Ok(Committed::Known(record));
        }
    };
    let sqlite = connection.sqlite();
    write_rows(&[(&job.commit, &numbered)], &ledger, sqlite)
        .await
        .map_err(|failed| failed.error)?;
    project_one(&job.commit, &numbered, &job.projections, sqlite).await?;
    connection.commit().await?;
    Ok(Committed::Fresh(numbered.record))
}

/// Judges in order. First come those whose verdict hangs on nothing that this batch has yet to
/// write: they can be answered at once, so a batch of replays begins no transaction.
fn judge_all(
    jobs: Vec<Job>,
    ledger: &mut BatchLedger,
    connection: &mut WriteConnection,
) -> (Vec<Verdict>, Vec<Verdict>) {
    let (mut known, mut pending) = (Vec::new(), Vec::with_capacity(jobs.len()));
    for job in jobs {
        let is_certain = ledger.is_stored(&job.commit) || pending.is_empty();
        let judged = judge(&job.commit, ledger, &mut connection.counters);
        match judged {
            Judged::Known(_) | Judged::Refused(_) if is_certain => known.push((job, judged)),
            Judged::Known(_) | Judged::Refused(_) | Judged::Fresh(_) => pending.push((job, judged)),
        }
    }
    (known, pending)
}

async fn write(
    pending: &[Verdict],
    ledger: &BatchLedger,
    connection: &mut WriteConnection,
) -> Result<(), WriteFailure> {
    let fresh: Vec<(&Job, &Numbered)> = pending
        .iter()
        .filter_map(|(job, judged)| match judged {
            Judged::Fresh(numbered) => Some((job, numbered)),
            Judged::Known(_) | Judged::Refused(_) => None,
        })
        .collect();
    let rows: Vec<(&Commit, &Numbered)> =
        fresh.iter().map(|(job, numbered)| (&job.commit, *numbered)).collect();
    if fresh.iter().all(|(job, _)| job.projections.0.is_empty()) {
        return write_whole(&rows, ledger, connection).await;
    }
    connection.begin().await?;
    write_rows(&rows, ledger, connection.sqlite()).await?;
    for (job, numbered) in fresh {
        project_one(&job.commit, numbered, &job.projections, connection.sqlite()).await?;
    }
    Ok(connection.commit().await?)
}

/// Shows a commit's events to its projections.
pub(crate) async fn project_one(
    commit: &Commit,
    numbered: &Numbered,
    projections: &Projections<SqliteConnection>,
    sqlite: &mut SqliteConnection,
) -> Result<(), StoreError> {
    if projections.0.is_empty() {
        return Ok(());
    }
    let events = stored_events(commit, numbered.first_position)?;
    project_inline(&events, projections, sqlite).await
}

fn answer_all(verdicts: Vec<Verdict>, stats: &Counts) {
    for (job, judged) in verdicts {
        match judged {
            Judged::Fresh(numbered) => {
                stats.fresh();
                job.answer(Ok(Committed::Fresh(numbered.record)));
            }
            Judged::Known(record) => {
                stats.replay();
                job.answer(Ok(Committed::Known(record)));
            }
            Judged::Refused(error) => job.answer(Err(error)),
        }
    }
}

/// After a failure: who may fare better alone. The others are answered.
fn give_back(pending: Vec<Verdict>, failure: WriteFailure) -> Vec<Job> {
    let jobs: Vec<Job> = pending.into_iter().map(|(job, _)| job).collect();
    let hopeless = matches!(failure.error, StoreError::Unknown | StoreError::Busy);
    if hopeless || (jobs.len() == 1 && !failure.is_stale) {
        return refuse(jobs, &failure.error);
    }
    jobs
}

fn refuse(jobs: Vec<Job>, error: &StoreError) -> Vec<Job> {
    for job in jobs {
        job.answer(Err(error.clone()));
    }
    Vec::new()
}
