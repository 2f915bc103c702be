//! The street of an event behind the commands: lease, read, plan, step, save.
//!
//! One follower for each projection and partition. It goes in a circle and holds nothing but its
//! lease and a position: whatever it believes is checked against the checkpoint when a step begins,
//! so it may be killed anywhere, or wake up after another has taken over.

pub(crate) mod plan;
pub(crate) mod trouble;

use std::sync::Arc;
use std::time::Duration;

use sequor_core::checkpoint::{CheckpointId, Lease, Mover};
use sequor_core::ports::{Clock, Follow, Step};
use sequor_core::projection::by_tenant;
use sequor_core::{Position, StoreError, StoredEvent, Wants};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use self::plan::{plan, streams_of};
use self::trouble::{Trouble, is_of_the_store};
use crate::board::Board;
use crate::error::Disorder;
use crate::runner::Shown;
use crate::runner::settings::RunnerSettings;
use crate::share::{Place, Share};

/// What all followers of a projection share.
pub(crate) struct Work<S: Follow> {
    pub(crate) store: Arc<S>,
    pub(crate) projection: Shown<S>,
    pub(crate) wants: Wants,
    pub(crate) settings: RunnerSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) board: Board,
    pub(crate) share: Share,
    pub(crate) owner: Uuid,
}

/// Follows the events of a partition for a projection.
pub(crate) struct Follower<S: Follow> {
    work: Arc<Work<S>>,
    checkpoint: CheckpointId,
    bell: Arc<Notify>,
    stopping: watch::Receiver<bool>,
    /// Where the next page begins; believed, until a step says otherwise.
    position: Position,
    trouble: Trouble,
}

/// What to do next.
enum Next {
    /// There may be more.
    GoOn,
    /// Nothing is there; a commit of this process may change that at once.
    Idle,
    /// Something failed; nothing changes that before so much time has passed.
    Rest(Duration),
    /// The lease has gone to somebody else.
    Leave,
}

/// A lease, and when it is to be renewed.
struct Held {
    lease: Lease,
    renew_at: Instant,
    /// How often that was tried in vain.
    misses: u32,
}

/// How often a lease is tried to be renewed, in the time that it still lasts for.
const MISSES_MAX: u32 = 5;

impl Held {
    fn from(lease: Lease, renewal: Duration) -> Self {
        Self { lease, renew_at: Instant::now() + renewal, misses: 0 }
    }

    fn once_more(self, pause: Duration) -> Self {
        Self { renew_at: Instant::now() + pause, misses: self.misses + 1, ..self }
    }
}

impl<S: Follow> Follower<S> {
    pub(crate) fn new(
        work: Arc<Work<S>>,
        checkpoint: CheckpointId,
        bell: Arc<Notify>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (position, trouble) = (Position::START, Trouble::default());
        Self { work, checkpoint, bell, stopping, position, trouble }
    }

    /// Works until it is told to stop.
    pub(crate) async fn run(mut self) {
        while !*self.stopping.borrow() {
            if let Some(place) = self.work.share.enter()
                && let Some(lease) = self.take_lease().await
            {
                match self.find_position().await {
                    Ok(()) => self.follow(lease, place).await,
                    Err(error) => tracing::warn!(%error, "a checkpoint could not be read"),
                }
                self.leave();
            }
            self.rest(self.renewal()).await;
        }
    }

    /// Where the checkpoint stands, so that those who wait know it before anything moves.
    async fn find_position(&mut self) -> Result<(), StoreError> {
        let CheckpointId { projection, version, partition } = &self.checkpoint;
        let all = self.work.store.checkpoints(projection, *version).await?;
        let its = all.into_iter().find(|(one, _)| one == partition);
        self.position = its.map_or(Position::START, |(_, position)| position);
        let position = self.position;
        // Only who has the lease parks a stream.
        let may_have_parked = !self.work.store.parked(projection, *version, 1).await?.is_empty();
        self.work.board.write(&self.checkpoint, |seen| {
            seen.position = position;
            seen.may_have_parked = may_have_parked;
            seen.is_ours = true;
        });
        Ok(())
    }

    /// Follows as long as it has the lease.
    async fn follow(&mut self, lease: Lease, place: Place) {
        let mut held = Held::from(lease, self.renewal());
        let mut idle = self.work.settings.poll_min;
        while !*self.stopping.borrow() {
            if Instant::now() >= held.renew_at {
                if place.is_one_too_many() {
                    break;
                }
                match self.take_lease().await {
                    Some(lease) => held = Held::from(lease, self.renewal()),
                    None if held.misses == MISSES_MAX => return,
                    // An operator may be in the middle of a step. If the lease is lost, the next step
                    // will tell.
                    None => held = held.once_more(self.renewal() / MISSES_MAX),
                }
            }
            match self.turn(&held.lease).await {
                Next::GoOn => idle = self.work.settings.poll_min,
                Next::Leave => return,
                Next::Rest(time) => self.rest(time).await,
                Next::Idle => {
                    let left = held.renew_at.saturating_duration_since(Instant::now());
                    self.idle(idle.min(left)).await;
                    idle = (idle * 2).min(self.work.settings.poll_max);
                }
            }
        }
        let let_go = self.work.store.lease(&self.checkpoint, self.work.owner, Duration::ZERO).await;
        if let Err(error) = let_go {
            tracing::debug!(%error, "a lease runs out by itself");
        }
    }

    /// One page: read, and taken in by a step.
    async fn turn(&mut self, lease: &Lease) -> Next {
        match self.advance(lease).await {
            Ok(next) => next,
            Err(failure) => self.meet(failure, lease).await,
        }
    }

    async fn advance(&mut self, lease: &Lease) -> Result<Next, Failure> {
        let Work { store, projection, wants, settings, .. } = &*self.work;
        let limit = self.trouble.page(settings.batch_events_max);
        let partition = self.checkpoint.partition;
        let page = store.read_after(partition, self.position, limit).await;
        let page = page.map_err(Failure::Store)?;
        let Some(last) = page.last() else { return Ok(Next::Idle) };
        let mover = Mover::Term(lease.term);
        let step = store.begin_step(&self.checkpoint, mover, &streams_of(&page)).await;
        let Some(mut step) = step.map_err(Failure::Store)? else { return Ok(Next::Leave) };
        if step.standing().position != self.position {
            // Another has moved it, or an answer was lost: begin from there.
            self.position = step.standing().position;
            return Ok(Next::GoOn);
        }
        let planned = plan(&page, step.standing(), wants).map_err(Failure::Disorder)?;
        for events in by_tenant(planned.shown.iter().copied()).into_values() {
            let shown = step.project(projection.as_ref(), &events).await;
            shown.map_err(|error| Failure::Projection(error, page.clone()))?;
        }
        // What was put off until COMMIT is the projection's as well.
        let saved = step.save(planned.progress).await;
        saved.map_err(|error| match error {
            error if is_of_the_store(&error) => Failure::Store(error),
            error => Failure::Projection(error, page.clone()),
        })?;
        self.passed(last.position);
        Ok(Next::GoOn)
    }

    /// Everything up to here is settled.
    fn passed(&mut self, position: Position) {
        self.position = position;
        self.trouble = self.trouble.after_success(position);
        self.work.board.write(&self.checkpoint, |seen| {
            seen.position = position;
            seen.trouble = None;
        });
    }

    /// Says what is in the way.
    fn say(&self, trouble: Option<String>) {
        self.work.board.write(&self.checkpoint, |seen| seen.trouble = trouble);
    }

    async fn take_lease(&self) -> Option<Lease> {
        let Work { store, owner, settings, .. } = &*self.work;
        match store.lease(&self.checkpoint, *owner, settings.lease_ttl).await {
            Ok(lease) => lease,
            Err(error) => {
                tracing::warn!(%error, checkpoint = ?self.checkpoint, "no lease");
                None
            }
        }
    }

    /// Others may move the checkpoint from here on.
    fn leave(&self) {
        self.work.board.write(&self.checkpoint, |seen| seen.is_ours = false);
    }

    /// Waits for a commit of this process, for so long, or for the end.
    async fn idle(&mut self, longest: Duration) {
        tokio::select! {
            _ = self.stopping.changed() => {}
            () = self.bell.notified() => {}
            () = sleep(longest) => {}
        }
    }

    /// Waits for so long, or for the end.
    async fn rest(&mut self, time: Duration) {
        tokio::select! {
            _ = self.stopping.changed() => {}
            () = sleep(time) => {}
        }
    }

    fn renewal(&self) -> Duration {
        self.work.settings.lease_ttl / 3
    }
}

/// However it ends: others may move the checkpoint from here on.
impl<S: Follow> Drop for Follower<S> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Why a page was not taken in.
enum Failure {
    /// The store was in trouble, or is damaged.
    Store(StoreError),
    /// The projection failed on something in this page.
    Projection(StoreError, Vec<StoredEvent>),
    /// The page does not follow what was taken in.
    Disorder(Disorder),
}
