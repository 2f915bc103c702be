//! Reading what was: the record under a key, and a stream's events, in one trip.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::event::StoredEvent;
use crate::key::IdempotencyKey;
use crate::record::Record;
use crate::stream::{StreamId, Version};
use crate::tenant::TenantId;

/// What to read.
#[derive(Clone, Debug)]
pub struct HistoryRequest<'a> {
    /// Whose.
    pub tenant: TenantId,
    /// The key to look up, if any.
    pub key: Option<&'a IdempotencyKey>,
    /// The stream to read, and the version after which to start, if any.
    pub stream: Option<(&'a StreamId, Version)>,
}

/// What was read, under one snapshot.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What is remembered under the key.
    pub record: Option<Record>,
    /// The stream's events in the order of their versions; none where the key is known, since the
    /// record answers then. So a replay costs the same, however long the stream is.
    pub events: Vec<StoredEvent>,
}

/// Reads the record under a key and a stream's events, in one trip and under one snapshot.
#[async_trait]
pub trait ReadHistory: Send + Sync + 'static {
    /// Reads.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], or [`StoreError::Corrupt`] when a row cannot be read or the
    /// versions of the stream have a hole. [`StoreError::Invalid`] when the stream is another
    /// tenant's than the request.
    ///
    /// # Cancellation
    /// Nothing is written, so nothing remains.
    async fn history(&self, request: HistoryRequest<'_>) -> Result<History, StoreError>;
}
