//! Reading events in the order of their positions.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::event::StoredEvent;
use crate::stream::{Partition, Position};

/// Reads a partition's events in position order, up to the mark below which nothing can appear
/// any more.
#[async_trait]
pub trait ReadLog: Send + Sync + 'static {
    /// At most `limit` events after `after`. A short page is not the end: only an empty one says
    /// that nothing more can be read now.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], or [`StoreError::Corrupt`] when a row cannot be read.
    async fn read_after(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError>;
}
