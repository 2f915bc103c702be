//! The street of a batch: one call, in which each command is judged on its own, and the answers.
//!
//! A batch is a matter of speed only. If it fails as a whole, nothing of it is true, and each of its
//! commits goes alone, so that nobody suffers from a neighbour.

use std::time::Duration;

use sequor_core::{
    CommandId, Commit, Invalid, Name, Position, Projections, StoreError, StoredEvent, TenantId,
};
use sqlx::PgConnection;

use super::job::Job;
use super::one::{call_commit_one, only_stream};
use super::rows::BatchRows;
use super::verdicts::{Judged, judged};
use crate::connection::Session;
use crate::error::{commit_error, store_error};
use crate::partitions::PartitionLock;
use crate::project::project_inline;
use crate::statement::Protocol;
use crate::transaction;

pub(crate) const COMMIT: &str = include_str!("../sql/commit.sql");

/// How a batch is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// How long each lock of somebody else is waited for.
    pub(crate) wait: Duration,
    /// For whom the transaction of a handler speaks.
    pub(crate) speaks_for: Option<TenantId>,
    /// What that transaction has written last.
    pub(crate) written: Option<CommandId>,
    /// Whether the keys were claimed before, in the same transaction.
    pub(crate) is_claimed: bool,
}

/// Commits a batch, and says what became of each job.
///
/// # Errors
/// Nothing of it is true, except with [`StoreError::Unknown`].
pub(crate) async fn commit_batch(
    jobs: &[Job],
    wait: Duration,
    session: &mut Session,
) -> Result<Vec<Judged>, StoreError> {
    let call = Call { wait, speaks_for: None, written: None, is_claimed: false };
    let commits: Vec<(&Commit, PartitionLock)> =
        jobs.iter().map(|job| (&job.commit, job.lock)).collect();
    if jobs.iter().all(|job| job.projections.0.is_empty()) {
        // The statement is the whole transaction, so its failure is that of a commit.
        return call_shortest(&commits, call, session).await.map_err(Failure::of_commit);
    }
    transaction::begin(session, None).await?;
    let committed = async {
        let judged = project_all(jobs, &commits, call, session).await?;
        transaction::commit(session).await?;
        Ok(judged)
    };
    let committed = committed.await;
    match committed {
        // Nobody can tell any more, whatever a rollback would say.
        Ok(_) | Err(StoreError::Unknown) => {}
        Err(_) => transaction::rollback(session).await?,
    }
    committed
}

/// The short call, where there is one command for it and it can decide; else the other.
async fn call_shortest(
    commits: &[(&Commit, PartitionLock)],
    call: Call,
    session: &mut Session,
) -> Result<Vec<Judged>, Failure> {
    if let [(commit, lock)] = commits
        && let Some(write) = only_stream(commit)
        && let Some(judged) = call_commit_one(commit, write, (*lock, call), session).await?
    {
        return Ok(vec![judged]);
    }
    call_commit(commits, call, session).await
}

/// Writes the rows, and shows their events to the projections, each for its own tenant.
async fn project_all(
    jobs: &[Job],
    commits: &[(&Commit, PartitionLock)],
    call: Call,
    session: &mut Session,
) -> Result<Vec<Judged>, StoreError> {
    let all = call_commit(commits, call, session).await.map_err(Failure::within_transaction)?;
    let written = commits.last().map(|(commit, _)| commit.meta.command_id);
    let mut spoke_for = None;
    for (job, judged) in jobs.iter().zip(&all) {
        let Judged::Fresh(positions) = judged else { continue };
        if job.projections.0.is_empty() || positions.is_empty() {
            continue;
        }
        let tenant = job.commit.meta.tenant;
        if spoke_for.is_some_and(|other| other != tenant) {
            transaction::fire_triggers(session).await?;
        }
        transaction::speak_for(session, tenant).await?;
        project_one(&job.commit, positions, &job.projections, session).await?;
        transaction::check_open(session, tenant, written).await?;
        spoke_for = Some(tenant);
    }
    if let Some(tenant) = spoke_for
        && session.protocol == Protocol::Simple
    {
        transaction::leave_clean(session, tenant, written).await?;
    }
    Ok(all)
}

/// Shows a commit's events to its projections.
pub(crate) async fn project_one(
    commit: &Commit,
    positions: &[Position],
    projections: &Projections<PgConnection>,
    session: &mut Session,
) -> Result<(), StoreError> {
    if projections.0.is_empty() {
        return Ok(());
    }
    project_inline(&stored_events(commit, positions)?, projections, session).await
}

/// A commit's events as they are stored.
fn stored_events(commit: &Commit, positions: &[Position]) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = Vec::with_capacity(positions.len());
    for (position, event) in positions.iter().zip(&commit.events) {
        let write = commit.streams.get(event.stream);
        events.push(StoredEvent {
            position: *position,
            stream: write.ok_or(Invalid::EventWithoutStream)?.stream.clone(),
            version: event.version,
            name: Name::new(event.name.name)?,
            schema_version: event.name.schema_version,
            payload: event.payload.clone(),
            meta: commit.meta.clone(),
        });
    }
    Ok(events)
}

/// Why a call failed as a whole.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The commits cannot be sent; nothing was.
    Request(Invalid),
    /// The statement failed.
    Statement(sqlx::Error),
    /// The statement has run, and its answer makes no sense.
    Answer(StoreError),
}

impl Failure {
    /// Inside a transaction nothing is true yet.
    pub(crate) fn within_transaction(self) -> StoreError {
        match self {
            Self::Request(invalid) => invalid.into(),
            Self::Statement(error) => store_error(error),
            Self::Answer(error) => error,
        }
    }

    /// Where the statement was the whole transaction, it may be true.
    fn of_commit(self) -> StoreError {
        match self {
            Self::Request(invalid) => invalid.into(),
            Self::Statement(error) => commit_error(error),
            Self::Answer(error) => {
                tracing::error!(%error, "a batch was answered in a way that makes no sense");
                StoreError::Unknown
            }
        }
    }
}

/// The one call: what becomes of each commit, in order.
pub(crate) async fn call_commit(
    commits: &[(&Commit, PartitionLock)],
    call: Call,
    session: &mut Session,
) -> Result<Vec<Judged>, Failure> {
    let rows = BatchRows::of(commits).map_err(Failure::Request)?;
    let streams = rows.streams().to_vec();
    let statement = session
        .statement(COMMIT)
        .bind(i32::try_from(call.wait.as_millis()).unwrap_or(i32::MAX))
        .bind(call.speaks_for.map(|tenant| *tenant.as_uuid()))
        .bind(call.written.map(|command| command.0))
        .bind(call.is_claimed);
    let found = rows.bind(statement).fetch_all(&mut session.postgres).await;
    let found = found.map_err(Failure::Statement)?;
    judged(&found, commits.iter().map(|(commit, _)| *commit), &streams).map_err(Failure::Answer)
}
