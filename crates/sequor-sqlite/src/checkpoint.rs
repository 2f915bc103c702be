//! Where a projection's rows and its checkpoint become true together: in one transaction of the
//! writer.

use std::collections::HashMap;

use async_trait::async_trait;
use sequor_core::checkpoint::{
    CheckpointId, Mover, ParkedStream, Progress, Standing, StreamStanding,
};
use sequor_core::ports::{KeepCheckpoints, Step, Transaction};
use sequor_core::{Name, Partition, Position, Projection, StoreError, StoredEvent, StreamId};
use sqlx::SqliteConnection;
use tokio::time::Instant;

use crate::commit::rows::Rows;
use crate::error::{corrupt, store_error};
use crate::project::{RUN_MAX, project};
use crate::row;
use crate::store::SqliteStore;
use crate::transaction::SqliteTransaction;

/// An open step of a projection: the write connection, on loan from the writer. Dropping it rolls
/// back.
#[derive(Debug)]
pub struct SqliteStep {
    checkpoint: CheckpointId,
    standing: Standing,
    transaction: SqliteTransaction,
    /// Until when the projection may work.
    deadline: Instant,
    /// Whether something failed, after which nothing of it may become true.
    is_spoilt: bool,
}

#[async_trait]
impl KeepCheckpoints for SqliteStore {
    type Step = SqliteStep;

    async fn begin_step(
        &self,
        checkpoint: &CheckpointId,
        mover: Mover,
        streams: &[StreamId],
    ) -> Result<Option<SqliteStep>, StoreError> {
        let mut transaction = self.begin_for(None).await?;
        // Whoever has the write lock is alone, so this stays so until the step ends.
        if !self.leases().allow(checkpoint, mover) {
            return Ok(None);
        }
        let standing = read_standing(checkpoint, streams, transaction.connection()).await?;
        let checkpoint = checkpoint.clone();
        let deadline = Instant::now() + RUN_MAX;
        Ok(Some(SqliteStep { checkpoint, standing, transaction, deadline, is_spoilt: false }))
    }

    async fn standing(
        &self,
        checkpoint: &CheckpointId,
        streams: &[StreamId],
    ) -> Result<Standing, StoreError> {
        let mut reader = self.readers().reader().await?;
        read_standing(checkpoint, streams, reader.sqlite()?).await
    }

    async fn checkpoints(
        &self,
        projection: &Name,
        version: u32,
    ) -> Result<Vec<(Partition, Position)>, StoreError> {
        let mut reader = self.readers().reader().await?;
        let rows = sqlx::query(include_str!("sql/read_checkpoints.sql"))
            .bind(projection.as_str())
            .bind(version)
            .fetch_all(reader.sqlite()?)
            .await;
        rows.map_err(store_error)?.iter().map(row::checkpoint::checkpoint).collect()
    }

    async fn parked(
        &self,
        projection: &Name,
        version: u32,
        limit: usize,
    ) -> Result<Vec<ParkedStream>, StoreError> {
        let mut reader = self.readers().reader().await?;
        let rows = sqlx::query(include_str!("sql/read_parked.sql"))
            .bind(projection.as_str())
            .bind(version)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(reader.sqlite()?)
            .await;
        let read = |row| row::checkpoint::parked_stream(row, projection, version);
        rows.map_err(store_error)?.iter().map(read).collect()
    }
}

#[async_trait]
impl Step for SqliteStep {
    type Connection = SqliteConnection;

    fn standing(&self) -> &Standing {
        &self.standing
    }

    async fn project(
        &mut self,
        projection: &dyn Projection<SqliteConnection>,
        events: &[&StoredEvent],
    ) -> Result<(), StoreError> {
        // Set first, so that a future that is dropped half-way leaves a step that cannot be saved.
        if std::mem::replace(&mut self.is_spoilt, true) {
            return Err(spoilt());
        }
        project(projection, events, self.deadline, self.transaction.connection()).await?;
        self.is_spoilt = false;
        Ok(())
    }

    async fn save(mut self, progress: Progress) -> Result<(), StoreError> {
        if self.is_spoilt {
            return Err(spoilt());
        }
        write(&self.checkpoint, &progress, self.transaction.connection()).await?;
        self.transaction.commit().await.map(drop)
    }
}

fn spoilt() -> StoreError {
    corrupt("a step cannot be saved in which a projection failed")
}

async fn read_standing(
    checkpoint: &CheckpointId,
    streams: &[StreamId],
    connection: &mut SqliteConnection,
) -> Result<Standing, StoreError> {
    let position = sqlx::query(include_str!("sql/read_checkpoint.sql"))
        .bind(checkpoint.projection.as_str())
        .bind(checkpoint.version)
        .bind(checkpoint.partition.get())
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?;
    let position = position.map_or(Ok(Position::START), |row| row::checkpoint::position(&row))?;
    if streams.is_empty() {
        return Ok(Standing { position, streams: HashMap::new() });
    }
    let mut wanted = Rows::new();
    for stream in streams {
        wanted.stream(stream);
    }
    let rows = sqlx::query(include_str!("sql/read_standing.sql"))
        .bind(checkpoint.projection.as_str())
        .bind(checkpoint.version)
        .bind(wanted.into_text())
        .fetch_all(connection)
        .await
        .map_err(store_error)?;
    let found = rows.iter().map(|row| {
        let (place, standing) = row::checkpoint::wanted_standing(row)?;
        let stream = streams.get(place).ok_or_else(|| corrupt("a stream that nobody wanted"))?;
        Ok((stream.clone(), standing))
    });
    let streams = found.collect::<Result<HashMap<StreamId, StreamStanding>, StoreError>>()?;
    Ok(Standing { position, streams })
}

async fn write(
    checkpoint: &CheckpointId,
    progress: &Progress,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    let CheckpointId { projection, version, partition } = checkpoint;
    if let Some(position) = progress.position {
        sqlx::query(include_str!("sql/save_checkpoint.sql"))
            .bind(projection.as_str())
            .bind(version)
            .bind(partition.get())
            .bind(i64::try_from(position.get()).unwrap_or(i64::MAX))
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
    }
    if progress.streams.is_empty() {
        return Ok(());
    }
    let mut rows = Rows::new();
    for (stream, standing) in &progress.streams {
        let columns = rows.stream(stream).number(standing.version.get());
        match &standing.parked {
            None => columns.null().null().null(),
            Some(parked) => columns
                .text(&parked.reason)
                .number(parked.attempts.into())
                .signed(parked.since.as_micros()),
        };
    }
    sqlx::query(include_str!("sql/save_streams.sql"))
        .bind(projection.as_str())
        .bind(version)
        .bind(partition.get())
        .bind(rows.into_text())
        .execute(connection)
        .await
        .map(drop)
        .map_err(store_error)
}
