//! Where a projection's rows and its checkpoint become true together.
//!
//! A step is one transaction. Our own statements run as the bus, which may move checkpoints; the
//! projection's run as `sequor_app`, for one tenant at a time.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sequor_core::checkpoint::{CheckpointId, Mover, ParkedStream, Progress, Standing};
use sequor_core::ports::{KeepCheckpoints, Step};
use sequor_core::{Name, Partition, Position, Projection, StoreError, StoredEvent, StreamId};
use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use uuid::Uuid;

use crate::connection::Session;
use crate::error::corrupt;
use crate::pool::Loan;
use crate::project::{RUN_MAX, project};
use crate::row;
use crate::row::{partition_number, signed};
use crate::statement::{Protocol, Statement};
use crate::store::PostgresStore;
use crate::transaction::{self, RESET_POOLED, clean_up, undo};

/// An open step of a projection. Dropping it rolls back.
#[derive(Debug)]
pub struct PostgresStep {
    checkpoint: CheckpointId,
    standing: Standing,
    /// The transaction in which the checkpoint was taken.
    transaction: String,
    /// There until the step ends.
    loan: Option<Loan>,
    /// Why nothing of it may become true.
    failure: Option<StoreError>,
    /// Until when the projection may work.
    deadline: Instant,
    /// Its turn among the steps.
    _turn: OwnedSemaphorePermit,
}

#[async_trait]
impl KeepCheckpoints for PostgresStore {
    type Step = PostgresStep;

    async fn begin_step(
        &self,
        checkpoint: &CheckpointId,
        mover: Mover,
        streams: &[StreamId],
    ) -> Result<Option<PostgresStep>, StoreError> {
        let turn = self.step_turn().await?;
        let mut loan = self.pool().lend().await?;
        let wait = i32::try_from(self.lock_wait_max().as_millis()).unwrap_or(i32::MAX);
        match begin(loan.session(), (checkpoint, mover, wait), streams).await {
            Ok(Some((standing, transaction))) => Ok(Some(PostgresStep {
                checkpoint: checkpoint.clone(),
                standing,
                transaction,
                loan: Some(loan),
                failure: None,
                deadline: Instant::now() + RUN_MAX,
                _turn: turn,
            })),
            Ok(None) => {
                undo(loan);
                Ok(None)
            }
            Err(error) => {
                give_up(loan, &error);
                Err(error)
            }
        }
    }

    async fn standing(
        &self,
        checkpoint: &CheckpointId,
        streams: &[StreamId],
    ) -> Result<Standing, StoreError> {
        let read = |statement: Statement<'static>| {
            let statement = statement
                .bind(checkpoint.projection.to_string())
                .bind(row::schema(checkpoint.version))
                .bind(partition_number(checkpoint.partition));
            bind_streams(statement, streams.iter())
        };
        let rows = self.ask(include_str!("sql/read_standing.sql"), read).await?;
        let Some((first, others)) = rows.split_first() else {
            return Ok(Standing { position: Position::START, streams: HashMap::new() });
        };
        standing_of(row::checkpoint::position(first)?, others, streams)
    }

    async fn checkpoints(
        &self,
        projection: &Name,
        version: u32,
    ) -> Result<Vec<(Partition, Position)>, StoreError> {
        let (name, version) = (projection.to_string(), row::schema(version));
        let read = |statement: Statement<'static>| statement.bind(name).bind(version);
        let rows = self.ask(include_str!("sql/read_checkpoints.sql"), read).await?;
        rows.iter().map(row::checkpoint::checkpoint).collect()
    }

    async fn parked(
        &self,
        projection: &Name,
        version: u32,
        limit: usize,
    ) -> Result<Vec<ParkedStream>, StoreError> {
        let (name, limit) = (projection.to_string(), i64::try_from(limit).unwrap_or(i64::MAX));
        let read = |statement: Statement<'static>| {
            statement.bind(name).bind(row::schema(version)).bind(limit)
        };
        let rows = self.ask(include_str!("sql/read_parked.sql"), read).await?;
        let read = |row| row::checkpoint::parked_stream(row, projection, version);
        rows.iter().map(read).collect()
    }
}

#[async_trait]
impl Step for PostgresStep {
    type Connection = PgConnection;

    fn standing(&self) -> &Standing {
        &self.standing
    }

    async fn project(
        &mut self,
        projection: &dyn Projection<PgConnection>,
        events: &[&StoredEvent],
    ) -> Result<(), StoreError> {
        // Set first, so that a future that is dropped half-way leaves a step that cannot be saved.
        let unfinished = corrupt("a step was given up half-way; it cannot be saved");
        if let Some(failure) = self.failure.replace(unfinished) {
            self.failure = Some(failure.clone());
            return Err(failure);
        }
        let projected = match events.first() {
            None => Ok(()),
            Some(_) => show(projection, events, self.deadline, &mut self.loan).await,
        };
        self.failure = projected.as_ref().err().cloned();
        projected
    }

    async fn save(mut self, progress: Progress) -> Result<(), StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        // A task of its own, so that a caller who gives up waiting does not halve it.
        let saving = tokio::spawn(async move {
            let session = session(&mut self.loan)?;
            let saved = save(session, (&self.checkpoint, &self.transaction), &progress).await;
            if let Err(error) = saved {
                self.failure = Some(error.clone());
                return Err(error);
            }
            let committed = transaction::commit(session).await;
            if let Some(loan) = self.loan.take() {
                tokio::spawn(clean_up(loan, committed.clone()));
            }
            committed
        });
        saving.await.unwrap_or(Err(StoreError::Unknown))
    }
}

impl Drop for PostgresStep {
    fn drop(&mut self) {
        let Some(loan) = self.loan.take() else { return };
        match &self.failure {
            Some(error) => give_up(loan, error),
            None => undo(loan),
        }
    }
}

/// Rolls back; a session that was lost is thrown away, and the server rolls back.
fn give_up(loan: Loan, error: &StoreError) {
    if matches!(error, StoreError::Unavailable(_) | StoreError::Unknown) {
        loan.give_back(&Err::<(), _>(error.clone()));
    } else {
        undo(loan);
    }
}

fn session(loan: &mut Option<Loan>) -> Result<&mut Session, StoreError> {
    Ok(loan.as_mut().ok_or_else(|| corrupt("the step has ended"))?.session())
}

/// Shows a projection events of a tenant, as that tenant, and makes sure that it is still so after.
async fn show(
    projection: &dyn Projection<PgConnection>,
    events: &[&StoredEvent],
    deadline: Instant,
    loan: &mut Option<Loan>,
) -> Result<(), StoreError> {
    let Some(tenant) = events.first().map(|event| event.stream.tenant) else { return Ok(()) };
    let session = session(loan)?;
    transaction::speak_for(session, tenant).await?;
    project(projection, events, deadline, session).await?;
    transaction::fire_triggers(session).await?;
    transaction::check_open(session, tenant, None).await
}

/// Where the checkpoint stands, and the transaction that has it now; `None` when its lease has gone.
async fn begin(
    session: &mut Session,
    (checkpoint, mover, wait): (&CheckpointId, Mover, i32),
    streams: &[StreamId],
) -> Result<Option<(Standing, String)>, StoreError> {
    transaction::begin(session, None).await?;
    let term = match mover {
        Mover::Term(term) => Some(signed(term)),
        Mover::Operator => None,
    };
    let begin = session
        .statement(include_str!("sql/begin_step.sql"))
        .bind(wait)
        .bind(checkpoint.projection.to_string())
        .bind(row::schema(checkpoint.version))
        .bind(partition_number(checkpoint.partition))
        .bind(term);
    let rows = bind_streams(begin, streams.iter()).fetch_all(&mut session.postgres).await;
    let rows = rows.map_err(|error| session.failed(error))?;
    let Some((first, others)) = rows.split_first() else { return Ok(None) };
    let (position, transaction) = row::checkpoint::step(first)?;
    Ok(Some((standing_of(position, others, streams)?, transaction)))
}

fn standing_of(
    position: Position,
    rows: &[PgRow],
    streams: &[StreamId],
) -> Result<Standing, StoreError> {
    let mut standing = Standing { position, streams: HashMap::with_capacity(rows.len()) };
    for row in rows {
        let (place, stands) = row::checkpoint::wanted_standing(row)?;
        let stream = streams.get(place).ok_or_else(|| corrupt("a stream that nobody wanted"))?;
        standing.streams.insert(stream.clone(), stands);
    }
    Ok(standing)
}

fn bind_streams<'s>(
    statement: Statement<'static>,
    streams: impl Iterator<Item = &'s StreamId> + Clone,
) -> Statement<'static> {
    let all = streams.clone();
    statement
        .bind(all.clone().map(|stream| *stream.tenant.as_uuid()).collect::<Vec<Uuid>>())
        .bind(all.map(|stream| stream.aggregate.to_string()).collect::<Vec<String>>())
        .bind(streams.map(|stream| stream.id.to_string()).collect::<Vec<String>>())
}

/// Moves the checkpoint on: one message, whatever the projection has left behind.
async fn save(
    session: &mut Session,
    (checkpoint, transaction): (&CheckpointId, &str),
    progress: &Progress,
) -> Result<(), StoreError> {
    let mut save =
        Statement::new(include_str!("sql/save_step.sql"), Protocol::Simple, session.limit);
    if session.was_shared {
        save = save.after(include_str!("sql/speak_for_nobody.sql"));
    }
    let save = save
        .bind(checkpoint.projection.to_string())
        .bind(row::schema(checkpoint.version))
        .bind(partition_number(checkpoint.partition))
        .bind(transaction.to_owned())
        .bind(progress.position.map(|position| signed(position.get())));
    let streams = &progress.streams;
    let parked = || streams.iter().map(|(_, standing)| standing.parked.as_ref());
    let since = |micros| DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
    let save = bind_streams(save, streams.iter().map(|(stream, _)| stream))
        .bind(streams.iter().map(|(_, to)| signed(to.version.get())).collect::<Vec<i64>>())
        .bind(parked().map(|one| one.map(|one| one.reason.clone())).collect::<Vec<_>>())
        .bind(parked().map(|one| one.map(|one| row::schema(one.attempts))).collect::<Vec<_>>())
        .bind(parked().map(|one| one.map(|one| since(one.since.as_micros()))).collect::<Vec<_>>());
    let saved = save.execute(&mut session.postgres).await;
    saved.map_err(|error| session.failed(error))?;
    if session.was_shared && session.protocol == Protocol::Simple {
        // Behind a pooler the session may be anybody's after COMMIT.
        transaction::reset(session, RESET_POOLED).await?;
    }
    Ok(())
}
