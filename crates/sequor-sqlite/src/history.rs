//! The record under a key and a stream's events: one statement, hence one trip and one snapshot.

use async_trait::async_trait;
use futures_util::TryStreamExt;
use sequor_core::ports::{History, HistoryRequest, ReadHistory};
use sequor_core::{Invalid, StoreError, StoredEvent, StreamId, Version};
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqliteConnection};

use crate::error::{corrupt, store_error};
use crate::row::{self, Kind};
use crate::store::SqliteStore;

#[async_trait]
impl ReadHistory for SqliteStore {
    async fn history(&self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        let mut reader = self.readers().reader().await?;
        let history = read_history(reader.sqlite()?, request).await;
        if matches!(history, Err(StoreError::Unavailable(_))) {
            reader.discard();
        }
        history
    }
}

/// Reads on any connection: a reader's, or that of an open transaction.
pub(crate) async fn read_history(
    connection: &mut SqliteConnection,
    request: HistoryRequest<'_>,
) -> Result<History, StoreError> {
    if request.stream.is_some_and(|(stream, _)| stream.tenant != request.tenant) {
        return Err(Invalid::TenantsDiffer.into());
    }
    let Some(query) = query(&request) else {
        return Ok(History::default());
    };
    let Some((stream, after)) = request.stream else {
        // One row at most, and no waiting for what comes behind it.
        let row = query.fetch_optional(connection).await.map_err(store_error)?;
        let record = row.map(|row| row::record(&row, request.tenant)).transpose()?;
        return Ok(History { record, events: Vec::new() });
    };
    let mut events = Vec::new();
    let mut rows = query.fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(store_error)? {
        match row::kind(&row)? {
            Kind::Event => events.push(row::event(&row, stream)?),
            Kind::Record => {
                // A record comes alone: here too nobody waits for what comes behind it.
                let record = Some(row::record(&row, request.tenant)?);
                return Ok(History { record, events: Vec::new() });
            }
        }
    }
    check_versions(stream, after, &events)?;
    Ok(History { record: None, events })
}

type Query<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

fn query<'q>(request: &HistoryRequest<'q>) -> Option<Query<'q>> {
    let query = match (request.key, request.stream) {
        (None, None) => return None,
        (Some(_), None) => sqlx::query(include_str!("sql/history_record.sql")),
        (None, Some(_)) => sqlx::query(include_str!("sql/history_events.sql")),
        (Some(_), Some(_)) => sqlx::query(include_str!("sql/history.sql")),
    };
    let query = query
        .bind(request.tenant.as_uuid().as_bytes().to_vec())
        .bind(request.key.map(|key| key.as_str()));
    let Some((stream, after)) = request.stream else {
        return Some(query);
    };
    let after = i64::try_from(after.get()).unwrap_or(i64::MAX);
    Some(query.bind(stream.aggregate.as_str()).bind(stream.id.as_str()).bind(after))
}

/// Invariant: versions run 1, 2, 3 … without holes.
fn check_versions(
    stream: &StreamId,
    after: Version,
    events: &[StoredEvent],
) -> Result<(), StoreError> {
    let mut wanted = after;
    for event in events {
        wanted = wanted.next();
        if event.version != wanted {
            let found = event.version;
            return Err(corrupt(format!("{stream} has version {found} where {wanted} is missing")));
        }
    }
    Ok(())
}
