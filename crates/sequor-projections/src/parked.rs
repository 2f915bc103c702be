//! What to do with streams that a projection could not take in: look, try again, or skip.

use sequor_core::checkpoint::{
    CheckpointId, Mover, ParkedStream, Parking, Progress, StreamStanding,
};
use sequor_core::ports::{Follow, HistoryRequest, Step};
use sequor_core::{StoreError, StoredEvent, Version};

use crate::error::ParkedError;
use crate::followed::Followed;
use crate::follower::trouble::{is_of_the_store, reason_of};

impl<S: Follow> Followed<S> {
    /// The streams that are parked, those of longest standing first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], or [`StoreError::Corrupt`] when a row cannot be read.
    pub async fn parked(&self, limit: usize) -> Result<Vec<ParkedStream>, StoreError> {
        self.work.store.parked(&self.name, self.work.projection.version(), limit).await
    }

    /// Shows the projection again what waits of a stream, in order, after its fault was mended. Then
    /// the stream is free, and goes on with the others.
    ///
    /// # Errors
    /// [`ParkedError::StillParked`] when it fails again: what came before is taken in.
    ///
    /// # Cancellation
    /// What was taken in remains so, and the stream stays parked.
    pub async fn retry(&self, parked: &ParkedStream) -> Result<(), ParkedError> {
        let mut at_once = self.work.settings.batch_events_max;
        loop {
            match self.take_in(parked, at_once).await? {
                Taken::All => return Ok(()),
                Taken::Some => at_once = (at_once * 2).min(self.work.settings.batch_events_max),
                // Which of them it is shows one by one.
                Taken::Failed(_) if at_once > 1 => at_once = 1,
                Taken::Failed(error) => return self.park_again(parked, &error).await,
            }
        }
    }

    /// Leaves out the one event on which the projection failed, for good, and goes on with the next
    /// as [`Followed::retry`]. The rows of the projection lack it until they are made anew.
    ///
    /// # Errors
    /// As [`Followed::retry`].
    ///
    /// # Cancellation
    /// As [`Followed::retry`].
    pub async fn skip(&self, parked: &ParkedStream) -> Result<(), ParkedError> {
        let (step, stands) = self.begin(parked).await?;
        let version = stands.version.next();
        // Only what the caller has seen is left out, whoever else decides at the same time.
        if stands.version == parked.version {
            tracing::warn!(projection = %self.name, %version, "an event is skipped by decision");
            let stands = StreamStanding { version, ..stands };
            step.save(moved(parked, stands)).await?;
        } else {
            drop(step);
        }
        self.retry(parked).await
    }

    async fn begin(&self, parked: &ParkedStream) -> Result<(S::Step, StreamStanding), ParkedError> {
        let CheckpointId { projection, version, .. } = &parked.checkpoint;
        if *projection != self.name || *version != self.work.projection.version() {
            return Err(ParkedError::NotParked { stream: parked.stream.clone() });
        }
        let streams = std::slice::from_ref(&parked.stream);
        let store = &self.work.store;
        let step = store.begin_step(&parked.checkpoint, Mover::Operator, streams).await?;
        let not_parked = || ParkedError::NotParked { stream: parked.stream.clone() };
        let step = step.ok_or_else(not_parked)?;
        let stands = step.standing().streams.get(&parked.stream);
        let stands = stands.filter(|stands| stands.parked.is_some()).cloned();
        Ok((step, stands.ok_or_else(not_parked)?))
    }

    /// One step with what comes next of the stream, as far as the checkpoint has come.
    async fn take_in(&self, parked: &ParkedStream, at_once: usize) -> Result<Taken, ParkedError> {
        let (mut step, stands) = self.begin(parked).await?;
        let request = HistoryRequest {
            tenant: parked.stream.tenant,
            key: None,
            stream: Some((&parked.stream, stands.version)),
        };
        let waiting = self.work.store.history(request).await?.events;
        let up_to = step.standing().position;
        let waiting: Vec<&StoredEvent> =
            waiting.iter().take_while(|event| event.position <= up_to).collect();
        let next = waiting.get(..at_once).unwrap_or(&waiting);
        let wants = &self.work.wants;
        let shown: Vec<_> = next.iter().copied().filter(|event| wants.include(event)).collect();
        match step.project(self.work.projection.as_ref(), &shown).await {
            Ok(()) => {}
            Err(error) if is_of_the_store(&error) => return Err(error.into()),
            Err(error) => return Ok(Taken::Failed(error)),
        }
        let is_all = next.len() == waiting.len();
        let version = next.last().map_or(stands.version, |event| event.version);
        let parking = stands.parked.filter(|_| !is_all);
        match step.save(moved(parked, StreamStanding { version, parked: parking })).await {
            Ok(()) => {}
            Err(error) if is_of_the_store(&error) => return Err(error.into()),
            Err(error) => return Ok(Taken::Failed(error)),
        }
        Ok(if is_all { Taken::All } else { Taken::Some })
    }

    /// Notes why it failed this time.
    async fn park_again(
        &self,
        parked: &ParkedStream,
        error: &StoreError,
    ) -> Result<(), ParkedError> {
        let (step, stands) = self.begin(parked).await?;
        let version: Version = stands.version;
        let attempts = stands.parked.map_or(0, |parking| parking.attempts).saturating_add(1);
        let (reason, since) = (reason_of(error), self.work.clock.now());
        let parking = Parking { reason: reason.clone(), attempts, since };
        step.save(moved(parked, StreamStanding { version, parked: Some(parking) })).await?;
        Err(ParkedError::StillParked { stream: parked.stream.clone(), version, reason })
    }
}

/// How far a step of [`Followed::retry`] has come.
enum Taken {
    /// Nothing waits any more.
    All,
    /// More waits.
    Some,
    /// The projection failed; nothing was taken in.
    Failed(StoreError),
}

fn moved(parked: &ParkedStream, stands: StreamStanding) -> Progress {
    Progress { position: None, streams: vec![(parked.stream.clone(), stands)] }
}
