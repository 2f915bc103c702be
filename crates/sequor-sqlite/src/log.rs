//! Events in the order of their positions.

use async_trait::async_trait;
use futures_util::TryStreamExt;
use sequor_core::ports::ReadLog;
use sequor_core::{Partition, Position, StoreError, StoredEvent};
use sqlx::SqliteConnection;

use crate::error::store_error;
use crate::row;
use crate::store::SqliteStore;

#[async_trait]
impl ReadLog for SqliteStore {
    async fn read_after(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        if partition != Partition::ONLY {
            return Ok(Vec::new());
        }
        let mut reader = self.readers().reader().await?;
        let events = read_after(reader.sqlite()?, after, limit).await;
        if matches!(events, Err(StoreError::Unavailable(_))) {
            reader.discard();
        }
        events
    }
}

async fn read_after(
    connection: &mut SqliteConnection,
    after: Position,
    limit: usize,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut rows = sqlx::query(include_str!("sql/read_after.sql"))
        .bind(i64::try_from(after.get()).unwrap_or(i64::MAX))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch(connection);
    let mut events = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(store_error)? {
        events.push(row::logged_event(&row)?);
    }
    Ok(events)
}
