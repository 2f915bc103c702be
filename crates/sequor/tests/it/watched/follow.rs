//! Checkpoints and leases, not watched.

use std::time::Duration;

use sequor::checkpoint::{CheckpointId, Lease, Mover, ParkedStream, Release, Standing};
use sequor::ports::{Follow, KeepCheckpoints, KeepLeases, Listeners, Wake};
use sequor::uuid::Uuid;
use sequor::{Name, Partition, Position, StoreError, StreamId, async_trait};

use super::Watched;
use crate::home::Home;

#[async_trait]
impl<S: Home> KeepLeases for Watched<S> {
    async fn lease(
        &self,
        checkpoint: &CheckpointId,
        owner: Uuid,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.inner.lease(checkpoint, owner, ttl).await
    }

    async fn check_in(
        &self,
        release: &Release,
        runner: Uuid,
        ttl: Duration,
    ) -> Result<usize, StoreError> {
        self.inner.check_in(release, runner, ttl).await
    }
}

#[async_trait]
impl<S: Home> KeepCheckpoints for Watched<S> {
    type Step = S::Step;

    async fn begin_step(
        &self,
        checkpoint: &CheckpointId,
        mover: Mover,
        streams: &[StreamId],
    ) -> Result<Option<Self::Step>, StoreError> {
        self.inner.begin_step(checkpoint, mover, streams).await
    }

    async fn standing(
        &self,
        checkpoint: &CheckpointId,
        streams: &[StreamId],
    ) -> Result<Standing, StoreError> {
        self.inner.standing(checkpoint, streams).await
    }

    async fn checkpoints(
        &self,
        projection: &Name,
        version: u32,
    ) -> Result<Vec<(Partition, Position)>, StoreError> {
        self.inner.checkpoints(projection, version).await
    }

    async fn parked(
        &self,
        projection: &Name,
        version: u32,
        limit: usize,
    ) -> Result<Vec<ParkedStream>, StoreError> {
        self.inner.parked(projection, version, limit).await
    }
}

impl<S: Home> Wake for Watched<S> {
    fn listeners(&self) -> &Listeners {
        self.inner.listeners()
    }
}

impl<S: Home> Follow for Watched<S> {
    fn partitions(&self) -> Vec<Partition> {
        self.inner.partitions()
    }
}
