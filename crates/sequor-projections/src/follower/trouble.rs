//! What a follower does when a page was not taken in: wait, look closer, or park a stream.

use std::time::Duration;

use sequor_core::checkpoint::{CheckpointId, Lease, Mover, Parking, Progress, StreamStanding};
use sequor_core::ports::{Follow, Step};
use sequor_core::{Position, StoreError, StoredEvent, Version};

use super::{Failure, Follower, Next};

/// How long to wait after a first failure; it doubles each time.
const REST: Duration = Duration::from_millis(10);

/// How much oftener an event is tried on which the projection meets an error of the store, before its
/// stream is parked: it may be the event's fault all the same, such as a statement that takes too long.
const STORE_PATIENCE: u32 = 10;

/// What went wrong with the events that come next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    /// How often the next event has failed alone.
    attempts: u32,
    /// How often the store has, since it last worked.
    outages: u32,
    /// Up to here events are taken in one by one, to find out which of them fails.
    careful_until: Option<Position>,
}

impl Trouble {
    /// How many events to take in at a time.
    pub(super) fn page(self, events_max: usize) -> usize {
        if self.careful_until.is_some() { 1 } else { events_max }
    }

    /// Up to here all is well.
    pub(super) fn after_success(self, position: Position) -> Self {
        let careful_until = self.careful_until.filter(|until| *until > position);
        Self { attempts: 0, outages: 0, careful_until }
    }

    fn rest(self) -> Duration {
        REST * 2_u32.saturating_pow(self.attempts.max(self.outages).min(16))
    }
}

impl<S: Follow> Follower<S> {
    /// Meets a failure.
    pub(super) async fn meet(&mut self, failure: Failure, lease: &Lease) -> Next {
        let (error, page) = match failure {
            Failure::Projection(error, page) => (error, page),
            Failure::Store(error) => return self.wait_for_better(&error),
            Failure::Disorder(disorder) => return self.wait_for_better(&disorder),
        };
        match page.as_slice() {
            [culprit] => self.try_again_or_park(culprit, &error, lease).await,
            [.., last] => {
                self.trouble.careful_until = Some(last.position);
                if is_of_the_store(&error) { self.wait_for_better(&error) } else { Next::GoOn }
            }
            [] => Next::GoOn,
        }
    }

    /// Nothing can be done here but to try again later. The checkpoint stands still meanwhile.
    fn wait_for_better(&mut self, error: &dyn std::error::Error) -> Next {
        self.trouble.outages = self.trouble.outages.saturating_add(1);
        let CheckpointId { projection, partition, .. } = &self.checkpoint;
        let partition = partition.get();
        tracing::warn!(%error, %projection, partition, "a projection stands still");
        self.say(Some(error.to_string()));
        Next::Rest(self.trouble.rest().min(self.work.settings.poll_max))
    }

    async fn try_again_or_park(
        &mut self,
        culprit: &StoredEvent,
        error: &StoreError,
        lease: &Lease,
    ) -> Next {
        self.trouble.attempts += 1;
        let attempts_max = self.work.settings.attempts_max;
        // The step was opened, so the store is there; but its connection may just have gone.
        let patience = if is_of_the_store(error) { STORE_PATIENCE } else { 1 };
        if self.trouble.attempts < attempts_max.saturating_mul(patience) {
            self.say(Some(error.to_string()));
            return Next::Rest(self.trouble.rest().min(self.work.settings.poll_max));
        }
        match self.park(culprit, error, lease).await {
            Ok(next) => next,
            Err(error) => self.wait_for_better(&error),
        }
    }

    /// Leaves the culprit's stream behind, and goes on with the others.
    async fn park(
        &mut self,
        culprit: &StoredEvent,
        error: &StoreError,
        lease: &Lease,
    ) -> Result<Next, StoreError> {
        let store = &self.work.store;
        let CheckpointId { projection, version, partition } = &self.checkpoint;
        let parked_max = self.work.settings.parked_max;
        if store.parked(projection, *version, parked_max).await?.len() >= parked_max {
            let what = format!("{parked_max} streams are parked already; and then: {error}");
            return Err(StoreError::Corrupt { what });
        }
        let mover = Mover::Term(lease.term);
        let step = store.begin_step(&self.checkpoint, mover, &[]).await?;
        let Some(step) = step else { return Ok(Next::Leave) };
        if step.standing().position != self.position {
            return Ok(Next::GoOn);
        }
        let (stream, at) = (&culprit.stream, culprit.version);
        let parking = Parking {
            reason: reason_of(error),
            attempts: self.trouble.attempts,
            since: self.work.clock.now(),
        };
        let stands = StreamStanding {
            version: Version::new(at.get().saturating_sub(1)),
            parked: Some(parking),
        };
        let streams = vec![(stream.clone(), stands)];
        step.save(Progress { position: Some(culprit.position), streams }).await?;
        let (partition, position) = (partition.get(), culprit.position);
        tracing::error!(%error, %projection, partition, %position, version = %at, "a stream is parked");
        // First, so that nobody sees the position without it.
        self.work.board.write(&self.checkpoint, |seen| seen.may_have_parked = true);
        self.passed(position);
        Ok(Next::GoOn)
    }
}

/// What is kept of an error: bounded, and without NUL, which no column of PostgreSQL holds.
pub(crate) fn reason_of(error: &StoreError) -> String {
    let text = error.to_string();
    text.chars().take(1_000).map(|one| if one == '\0' { '\u{fffd}' } else { one }).collect()
}

/// Whether an error is the store's own trouble, and no fault of the projection.
pub(crate) fn is_of_the_store(error: &StoreError) -> bool {
    matches!(error, StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown)
}
