//! Who may move which checkpoint.

use std::ops::Range;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sequor_core::StoreError;
use sequor_core::checkpoint::{CheckpointId, Lease, Release};
use sequor_core::ports::KeepLeases;
use uuid::Uuid;

use crate::store::SqliteStore;

#[async_trait]
impl KeepLeases for SqliteStore {
    async fn lease(
        &self,
        checkpoint: &CheckpointId,
        owner: Uuid,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        Ok(self.leases().take(checkpoint, owner, time(ttl)))
    }

    async fn check_in(
        &self,
        release: &Release,
        runner: Uuid,
        ttl: Duration,
    ) -> Result<usize, StoreError> {
        Ok(self.leases().check_in(release, runner, time(ttl)))
    }
}

/// From now on, for so long, by the runtime's time, which tests can hold still.
fn time(ttl: Duration) -> Range<Instant> {
    let now = tokio::time::Instant::now().into_std();
    now..now + ttl
}
