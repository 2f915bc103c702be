//! Who may move which checkpoint, for how long, by the store's clock.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::checkpoint::{CheckpointId, Lease, Release};
use crate::error::StoreError;

/// Leases of checkpoints. Rows with a term, on the store's own clock: neither a clock of a process
/// nor a session that lives on can keep one.
#[async_trait]
pub trait KeepLeases: Send + Sync + 'static {
    /// Takes the lease of a checkpoint for `owner`, or renews it: for `ttl` from now on. `None` when
    /// somebody else has it, or is in the middle of a step. A `ttl` of zero lets go of it.
    ///
    /// # Errors
    /// [`StoreError::Busy`], [`StoreError::Unavailable`].
    async fn lease(
        &self,
        checkpoint: &CheckpointId,
        owner: Uuid,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError>;

    /// Says that a runner of a release is alive, for `ttl` from now on, and learns how many are,
    /// itself among them. A `ttl` of zero takes leave.
    ///
    /// # Errors
    /// [`StoreError::Busy`], [`StoreError::Unavailable`].
    async fn check_in(
        &self,
        release: &Release,
        runner: Uuid,
        ttl: Duration,
    ) -> Result<usize, StoreError>;
}
