//! Checkpoints and leases, as the reference store keeps them: no fault lies here.

use std::time::Duration;

use async_trait::async_trait;
use sequor_core::checkpoint::{CheckpointId, Lease, Mover, ParkedStream, Release, Standing};
use sequor_core::ports::{Follow, KeepCheckpoints, KeepLeases, Listeners, Wake};
use sequor_core::{Name, Partition, Position, StoreError, StreamId};
use sequor_memory::MemoryStep;
use uuid::Uuid;

use super::Broken;

#[async_trait]
impl KeepLeases for Broken {
    async fn lease(
        &self,
        checkpoint: &CheckpointId,
        owner: Uuid,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.store.lease(checkpoint, owner, ttl).await
    }

    async fn check_in(
        &self,
        release: &Release,
        runner: Uuid,
        ttl: Duration,
    ) -> Result<usize, StoreError> {
        self.store.check_in(release, runner, ttl).await
    }
}

#[async_trait]
impl KeepCheckpoints for Broken {
    type Step = MemoryStep;

    async fn begin_step(
        &self,
        checkpoint: &CheckpointId,
        mover: Mover,
        streams: &[StreamId],
    ) -> Result<Option<Self::Step>, StoreError> {
        self.store.begin_step(checkpoint, mover, streams).await
    }

    async fn standing(
        &self,
        checkpoint: &CheckpointId,
        streams: &[StreamId],
    ) -> Result<Standing, StoreError> {
        self.store.standing(checkpoint, streams).await
    }

    async fn checkpoints(
        &self,
        projection: &Name,
        version: u32,
    ) -> Result<Vec<(Partition, Position)>, StoreError> {
        self.store.checkpoints(projection, version).await
    }

    async fn parked(
        &self,
        projection: &Name,
        version: u32,
        limit: usize,
    ) -> Result<Vec<ParkedStream>, StoreError> {
        self.store.parked(projection, version, limit).await
    }
}

impl Wake for Broken {
    fn listeners(&self) -> &Listeners {
        self.store.listeners()
    }
}

impl Follow for Broken {
    fn partitions(&self) -> Vec<Partition> {
        self.store.partitions()
    }
}
