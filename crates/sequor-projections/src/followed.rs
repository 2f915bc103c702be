//! A projection that runs behind the commands, as its readers see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sequor_core::checkpoint::CheckpointId;
use sequor_core::ports::Follow;
use sequor_core::{Name, Partition, Position, Receipt, StoreError};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::board::Seen;
use crate::error::{AfterError, WaitError};
use crate::follower::Work;

/// A projection that runs behind the commands: in this process, or in another one.
pub struct Followed<S: Follow> {
    pub(crate) work: Arc<Work<S>>,
    pub(crate) name: Name,
}

/// How often the checkpoint of another process is looked at.
const LOOK: Duration = Duration::from_millis(10);

impl<S: Follow> Followed<S> {
    pub(crate) fn new(work: Arc<Work<S>>, name: Name) -> Self {
        Self { work, name }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// How far it has come, for each partition in which it has taken something in.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn positions(&self) -> Result<Vec<(Partition, Position)>, StoreError> {
        self.work.store.checkpoints(&self.name, self.work.projection.version()).await
    }

    /// Waits until the projection has taken in what follows from a command: at most for `timeout`.
    ///
    /// The receipt may be one of a replay: it names the events of the first execution, so a retry
    /// waits for what happened then. Without events there is nothing to wait for.
    ///
    /// # Errors
    /// [`WaitError`]; whichever, the command did commit.
    ///
    /// # Cancellation
    /// Nothing remains.
    pub async fn wait_for<O: Sync>(
        &self,
        receipt: &Receipt<O>,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        let (Some(wanted), Some(first)) = (receipt.position, receipt.streams.first()) else {
            return Ok(());
        };
        let command_id = receipt.command_id;
        if receipt.epoch != self.work.store.epoch() {
            return Err(WaitError::OtherEpoch { command_id });
        }
        let checkpoint = CheckpointId {
            projection: self.name.clone(),
            version: self.work.projection.version(),
            partition: self.work.store.partition(first.stream.tenant),
        };
        let mut reached = Position::START;
        let waiting = async {
            match self.pass(&checkpoint, wanted, &mut reached).await? {
                true => self.find_parked(&checkpoint, receipt).await,
                false => Ok(()),
            }
        };
        if let Ok(done) = tokio::time::timeout(timeout, waiting).await {
            return done;
        }
        Err(WaitError::Timeout {
            command_id,
            projection: self.name.clone(),
            wanted,
            reached,
            waited: timeout,
            trouble: self.trouble(&checkpoint),
        })
    }

    /// Whether what follows from a command was taken in, or is parked.
    async fn find_parked<O: Sync>(
        &self,
        checkpoint: &CheckpointId,
        receipt: &Receipt<O>,
    ) -> Result<(), WaitError> {
        let streams: Vec<_> = receipt.streams.iter().map(|after| after.stream.clone()).collect();
        let standing = self.work.store.standing(checkpoint, &streams).await?;
        for after in &receipt.streams {
            let Some(stands) = standing.streams.get(&after.stream) else { continue };
            let Some(parking) = &stands.parked else { continue };
            if after.version > stands.version {
                return Err(WaitError::Parked {
                    command_id: receipt.command_id,
                    projection: self.name.clone(),
                    stream: after.stream.clone(),
                    version: stands.version,
                    reason: parking.reason.clone(),
                });
            }
        }
        Ok(())
    }

    /// Waits as [`Followed::wait_for`], and then asks.
    ///
    /// # Errors
    /// [`AfterError::Wait`], and the query is not asked; or [`AfterError::Query`].
    ///
    /// # Cancellation
    /// That of the query.
    pub async fn query_after<O: Sync, T, E>(
        &self,
        receipt: &Receipt<O>,
        timeout: Duration,
        query: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, AfterError<E>> {
        self.wait_for(receipt, timeout).await?;
        query().await.map_err(AfterError::Query)
    }

    /// Comes back when the checkpoint has passed a position, and says whether streams may be parked.
    async fn pass(
        &self,
        checkpoint: &CheckpointId,
        wanted: Position,
        reached: &mut Position,
    ) -> Result<bool, StoreError> {
        let mut watching = self.work.board.watch(checkpoint);
        loop {
            let seen = watching.as_mut().map(|watching| watching.borrow_and_update().clone());
            *reached = (*reached).max(seen.as_ref().map_or(*reached, |seen| seen.position));
            if let Some(seen) = seen.as_ref().filter(|seen| seen.position >= wanted) {
                return Ok(seen.may_have_parked || !seen.is_ours);
            }
            if seen.is_none_or(|seen| !seen.is_ours) {
                let all = self.positions().await?;
                let its = all.into_iter().find(|(one, _)| *one == checkpoint.partition);
                *reached = (*reached).max(its.map_or(*reached, |(_, position)| position));
                if *reached >= wanted {
                    return Ok(true);
                }
            }
            changed_or_late(&mut watching).await;
        }
    }

    /// Why a follower of this process stands still, if one does.
    fn trouble(&self, checkpoint: &CheckpointId) -> Option<String> {
        self.work.board.watch(checkpoint)?.borrow().trouble.clone()
    }
}

/// What a follower of this process says next; what one of another process has saved meanwhile is to
/// be looked at.
async fn changed_or_late(watching: &mut Option<watch::Receiver<Seen>>) {
    match watching {
        None => sleep(LOOK).await,
        Some(watching) => {
            tokio::select! {
                _ = watching.changed() => {}
                () = sleep(LOOK) => {}
            }
        }
    }
}

impl<S: Follow> Clone for Followed<S> {
    fn clone(&self) -> Self {
        Self { work: Arc::clone(&self.work), name: self.name.clone() }
    }
}

impl<S: Follow> fmt::Debug for Followed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("name", &self.name).finish_non_exhaustive()
    }
}
