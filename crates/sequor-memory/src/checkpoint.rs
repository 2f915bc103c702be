//! Where a projection's rows and its checkpoint become true together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use sequor_core::audit::Finding;
use sequor_core::checkpoint::{
    CheckpointId, Mover, ParkedStream, Progress, Standing, StreamStanding,
};
use sequor_core::ports::{KeepCheckpoints, Step};
use sequor_core::{
    Name, Partition, Position, Projection, StoreError, StoredEvent, StreamId, Version,
};
use tokio::sync::OwnedRwLockWriteGuard;

use crate::project::project;
use crate::store::MemoryStore;
use crate::tables::Tables;

/// An open step of a projection, alone in its [`MemoryStore`] until it is dropped.
#[derive(Debug)]
pub struct MemoryStep {
    store: MemoryStore,
    checkpoint: CheckpointId,
    standing: Standing,
    tables: Tables,
    /// Whether something failed, after which nothing of it may become true.
    is_spoilt: bool,
    _turn: OwnedRwLockWriteGuard<()>,
}

#[async_trait]
impl KeepCheckpoints for MemoryStore {
    type Step = MemoryStep;

    async fn begin_step(
        &self,
        checkpoint: &CheckpointId,
        mover: Mover,
        streams: &[StreamId],
    ) -> Result<Option<MemoryStep>, StoreError> {
        let turn = self.own_turn().await?;
        if !self.leases().allow(checkpoint, mover) {
            return Ok(None);
        }
        let content = self.content();
        let standing = content.checkpoints.standing(checkpoint, streams);
        let tables = (*content.tables()).clone();
        drop(content);
        Ok(Some(MemoryStep {
            store: self.clone(),
            checkpoint: checkpoint.clone(),
            standing,
            tables,
            is_spoilt: false,
            _turn: turn,
        }))
    }

    async fn standing(
        &self,
        checkpoint: &CheckpointId,
        streams: &[StreamId],
    ) -> Result<Standing, StoreError> {
        Ok(self.content().checkpoints.standing(checkpoint, streams))
    }

    async fn checkpoints(
        &self,
        projection: &Name,
        version: u32,
    ) -> Result<Vec<(Partition, Position)>, StoreError> {
        Ok(self.content().checkpoints.positions(projection, version))
    }

    async fn parked(
        &self,
        projection: &Name,
        version: u32,
        limit: usize,
    ) -> Result<Vec<ParkedStream>, StoreError> {
        let mut parked = self.content().checkpoints.parked(projection, version);
        parked.sort_by_key(|one| one.parking.since);
        parked.truncate(limit);
        Ok(parked)
    }
}

#[async_trait]
impl Step for MemoryStep {
    type Connection = Tables;

    fn standing(&self) -> &Standing {
        &self.standing
    }

    async fn project(
        &mut self,
        projection: &dyn Projection<Tables>,
        events: &[&StoredEvent],
    ) -> Result<(), StoreError> {
        // Set first, so that a future that is dropped half-way leaves a step that cannot be saved.
        if std::mem::replace(&mut self.is_spoilt, true) {
            return Err(spoilt());
        }
        project(projection, events, &mut self.tables).await?;
        self.is_spoilt = false;
        Ok(())
    }

    async fn save(self, progress: Progress) -> Result<(), StoreError> {
        if self.is_spoilt {
            return Err(spoilt());
        }
        let mut content = self.store.content();
        content.checkpoints.save(&self.checkpoint, progress);
        content.replace_tables(self.tables);
        Ok(())
    }
}

fn spoilt() -> StoreError {
    StoreError::Corrupt { what: "a step cannot be saved in which a projection failed".to_owned() }
}

/// All checkpoints, and how far each projection has come in each stream.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    positions: HashMap<CheckpointId, Position>,
    streams: HashMap<(CheckpointId, StreamId), StreamStanding>,
}

impl Checkpoints {
    fn standing(&self, checkpoint: &CheckpointId, streams: &[StreamId]) -> Standing {
        let position = self.positions.get(checkpoint).copied().unwrap_or(Position::START);
        let met = streams.iter().filter_map(|stream| {
            let standing = self.streams.get(&(checkpoint.clone(), stream.clone()))?;
            Some((stream.clone(), standing.clone()))
        });
        Standing { position, streams: met.collect() }
    }

    fn save(&mut self, checkpoint: &CheckpointId, progress: Progress) {
        if let Some(position) = progress.position {
            self.positions.insert(checkpoint.clone(), position);
        }
        for (stream, standing) in progress.streams {
            self.streams.insert((checkpoint.clone(), stream), standing);
        }
    }

    fn positions(&self, projection: &Name, version: u32) -> Vec<(Partition, Position)> {
        let is_its = |id: &CheckpointId| id.projection == *projection && id.version == version;
        let its = self.positions.iter().filter(|(id, _)| is_its(id));
        its.map(|(id, position)| (id.partition, *position)).collect()
    }

    fn parked(&self, projection: &Name, version: u32) -> Vec<ParkedStream> {
        let is_its = |id: &CheckpointId| id.projection == *projection && id.version == version;
        let its = self.streams.iter().filter(|((id, _), _)| is_its(id));
        let parked = its.filter_map(|((id, stream), standing)| {
            Some(ParkedStream {
                checkpoint: id.clone(),
                stream: stream.clone(),
                version: standing.version,
                parking: standing.parked.clone()?,
            })
        });
        parked.collect()
    }

    /// No checkpoint is ahead of the log, and of each stream just that was taken in which lies up to
    /// it; of a parked one less.
    pub(crate) fn audit(&self, log: &[Arc<StoredEvent>]) -> Vec<Finding> {
        let last = log.last().map_or(Position::START, |event| event.position);
        let mut findings = Vec::new();
        for (checkpoint, position) in &self.positions {
            let (checkpoint, position) = (checkpoint.clone(), *position);
            if position > last {
                findings.push(Finding::CheckpointAhead { checkpoint, position, last });
                continue;
            }
            let mut wanted = BTreeMap::<&StreamId, Version>::new();
            for event in log.iter().take_while(|event| event.position <= position) {
                let version = wanted.entry(&event.stream).or_default();
                *version = version.next();
            }
            let taken = self.streams.iter().filter(|((id, _), _)| *id == checkpoint);
            let taken: BTreeMap<_, _> =
                taken.map(|((_, stream), stands)| (stream, stands)).collect();
            let both: BTreeSet<_> = wanted.keys().chain(taken.keys()).copied().collect();
            for stream in both {
                let wanted = wanted.get(stream).copied().unwrap_or_default();
                let stands = taken.get(stream);
                let is_right = stands.is_some_and(|stands| match stands.parked {
                    Some(_) => stands.version < wanted,
                    None => stands.version == wanted,
                });
                if !is_right {
                    findings.push(Finding::ProjectedStream {
                        projection: checkpoint.projection.clone(),
                        projection_version: checkpoint.version,
                        stream: stream.clone(),
                        taken: stands.map(|stands| stands.version),
                        wanted,
                    });
                }
            }
        }
        findings
    }
}
