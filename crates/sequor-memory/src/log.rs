//! Reading events in the order of their positions.

use async_trait::async_trait;
use sequor_core::ports::ReadLog;
use sequor_core::{Partition, Position, StoreError, StoredEvent};

use crate::store::MemoryStore;

#[async_trait]
impl ReadLog for MemoryStore {
    async fn read_after(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        if partition != Partition::ONLY {
            return Ok(Vec::new());
        }
        let found = self.content().log_after(after, limit);
        Ok(found.iter().map(|event| (**event).clone()).collect())
    }
}
