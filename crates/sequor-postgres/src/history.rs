//! The record under a key and a stream's events: one call, hence one trip and one snapshot.

use async_trait::async_trait;
use sequor_core::ports::{History, HistoryRequest, ReadHistory};
use sequor_core::{Invalid, StoreError, StoredEvent, StreamId, Version};

use crate::connection::Session;
use crate::error::{corrupt, store_error};
use crate::row::{self, Kind};
use crate::store::PostgresStore;

pub(crate) const HISTORY: &str = include_str!("sql/history.sql");

#[async_trait]
impl ReadHistory for PostgresStore {
    async fn history(&self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        let mut loan = self.pool().lend().await?;
        let history = read_history(loan.session(), request).await;
        loan.give_back(&history);
        history
    }
}

/// Reads on any session: one of the pool, or that of an open transaction.
pub(crate) async fn read_history(
    session: &mut Session,
    request: HistoryRequest<'_>,
) -> Result<History, StoreError> {
    if request.stream.is_some_and(|(stream, _)| stream.tenant != request.tenant) {
        return Err(Invalid::TenantsDiffer.into());
    }
    if request.key.is_none() && request.stream.is_none() {
        return Ok(History::default());
    }
    let after = request.stream.map_or(Version::NONE, |(_, after)| after);
    let rows = session
        .statement(HISTORY)
        .bind(request.tenant.as_uuid())
        .bind(request.key.map(|key| key.as_str()))
        .bind(request.stream.map(|(stream, _)| stream.aggregate.as_str()))
        .bind(request.stream.map(|(stream, _)| stream.id.as_str()))
        .bind(i64::try_from(after.get()).unwrap_or(i64::MAX))
        .fetch_all(&mut session.postgres)
        .await
        .map_err(store_error)?;
    let mut history = History::default();
    for row in &rows {
        match (row::kind(row)?, request.stream) {
            (Kind::Event, Some((stream, _))) => history.events.push(row::event(row, stream)?),
            (Kind::Record, _) => history.record = Some(row::record(row, request.tenant)?),
            (Kind::Event, None) => return Err(corrupt("events came that nobody asked for")),
        }
    }
    if let Some((stream, after)) = request.stream {
        check_versions(stream, after, &history.events)?;
    }
    Ok(history)
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
