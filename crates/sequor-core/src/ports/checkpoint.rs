//! Where a projection's rows and its checkpoint become true together.

use async_trait::async_trait;

use crate::checkpoint::{CheckpointId, Mover, ParkedStream, Progress, Standing};
use crate::error::StoreError;
use crate::event::StoredEvent;
use crate::names::Name;
use crate::projection::Projection;
use crate::stream::{Partition, Position, StreamId};

/// Keeps checkpoints, and moves them in one transaction with the rows that follow from it.
#[async_trait]
pub trait KeepCheckpoints: Send + Sync + 'static {
    /// A step of this store.
    type Step: Step;

    /// Opens a step: from here on nobody else moves the checkpoint, until it is saved or dropped.
    /// It tells where the checkpoint stands, with the streams among `streams` that were met before.
    ///
    /// A checkpoint that was never saved stands at the start of the log. `None` when the lease of
    /// this term has gone to somebody else.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when somebody else had the checkpoint for too long,
    /// [`StoreError::Unavailable`].
    async fn begin_step(
        &self,
        checkpoint: &CheckpointId,
        mover: Mover,
        streams: &[StreamId],
    ) -> Result<Option<Self::Step>, StoreError>;

    /// Where a checkpoint stands now, with the streams among `streams` that were met before. It may
    /// move at once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], or [`StoreError::Corrupt`] when a row cannot be read.
    async fn standing(
        &self,
        checkpoint: &CheckpointId,
        streams: &[StreamId],
    ) -> Result<Standing, StoreError>;

    /// How far a release of a projection has come, for each partition in which it has saved a step.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn checkpoints(
        &self,
        projection: &Name,
        version: u32,
    ) -> Result<Vec<(Partition, Position)>, StoreError>;

    /// The streams of a release of a projection that are parked, those of longest standing first, at
    /// most `limit`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], or [`StoreError::Corrupt`] when a row cannot be read.
    async fn parked(
        &self,
        projection: &Name,
        version: u32,
        limit: usize,
    ) -> Result<Vec<ParkedStream>, StoreError>;
}

/// An open transaction of a projection. Dropping it undoes all of it.
#[async_trait]
pub trait Step: Send + 'static {
    /// What the projection writes its rows through.
    type Connection: Send + ?Sized + 'static;

    /// Where the checkpoint stands. It stays so until the step ends.
    fn standing(&self) -> &Standing;

    /// Shows a projection events of one tenant, in the order of their positions.
    ///
    /// # Errors
    /// What the projection met, such as [`StoreError::Unavailable`] where it was the store's own
    /// trouble, and [`StoreError::Corrupt`] with its words where not; it panicked; it took too long.
    /// Afterwards the step can only be dropped.
    async fn project(
        &mut self,
        projection: &dyn Projection<Self::Connection>,
        events: &[&StoredEvent],
    ) -> Result<(), StoreError>;

    /// Makes everything true.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] when the connection was lost while committing; otherwise nothing was
    /// written.
    ///
    /// # Cancellation
    /// It becomes true whole, or not at all; the next step tells which.
    async fn save(self, progress: Progress) -> Result<(), StoreError>;
}
