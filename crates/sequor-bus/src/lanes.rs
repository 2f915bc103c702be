//! Commands on one aggregate are served in order, as long as any are under way: each is decided on
//! what those before it will have made, and lets the next one decide while its own commit is on
//! its way.

mod forecast;
mod under_way;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sequor_core::StreamId;
use sequor_core::ports::Submitted;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use crate::cache::{Cache, Entry};
use forecast::Forecast;
pub(crate) use forecast::Link;
pub(crate) use under_way::UnderWay;

/// How long anybody waits for a turn, or for the commits before it. Turns save work, and nothing
/// rests on them: who has waited for so long goes on without.
const WAIT_MAX: Duration = Duration::from_secs(5);

const SHARDS: usize = 16;

/// Lanes that a shard keeps for the next aggregate, so that a command alone needs no memory of its
/// own.
const IDLE_MAX: usize = 4;

/// One lane for each aggregate of which commands are under way.
pub(crate) struct Lanes {
    shards: [Mutex<Shard>; SHARDS],
    /// What has become true is remembered here.
    cache: Arc<Cache>,
}

#[derive(Default)]
struct Shard {
    open: HashMap<StreamId, Arc<Lane>>,
    idle: Vec<Arc<Lane>>,
}

/// The commands of one aggregate.
struct Lane {
    /// How many are in it. Changes under the lock of its shard only.
    stays: AtomicUsize,
    /// One permit: who has it decides.
    turn: Semaphore,
    /// Invariant: nobody else's code runs and nothing is awaited under this lock.
    forecast: Mutex<Forecast>,
    /// Tells of every answer.
    answered: Notify,
}

impl Lanes {
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        Self { shards: Default::default(), cache }
    }

    /// Waits for the turn to decide on an aggregate, but not for ever.
    pub(crate) async fn enter(self: &Arc<Self>, stream: StreamId) -> Turn {
        let lane = self.shard(&stream).enter(&stream);
        let mut turn = Turn { lanes: Arc::clone(self), stream, lane, held: false, submits: false };
        turn.take().await;
        turn
    }

    /// Spread by a sum: it only has to part aggregates that are hot at the same time.
    fn shard(&self, stream: &StreamId) -> MutexGuard<'_, Shard> {
        let sum: usize = stream.id.as_str().bytes().map(usize::from).sum();
        let [first, ..] = &self.shards;
        let shard = self.shards.get(sum % SHARDS).unwrap_or(first);
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn enter(&mut self, stream: &StreamId) -> Arc<Lane> {
        let lane = match self.open.get(stream) {
            Some(lane) => Arc::clone(lane),
            None => {
                let lane = self.idle.pop().unwrap_or_default();
                self.open.insert(stream.clone(), Arc::clone(&lane));
                lane
            }
        };
        lane.stays.fetch_add(1, Ordering::Relaxed);
        lane
    }

    /// Closes the lane behind the last.
    fn leave(&mut self, stream: &StreamId, lane: &Lane) {
        if lane.stays.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        if let Some(lane) = self.open.remove(stream)
            && self.idle.len() < IDLE_MAX
        {
            lane.forecast().clear();
            self.idle.push(lane);
        }
    }
}

impl Default for Lane {
    fn default() -> Self {
        let (forecast, answered) = (Mutex::default(), Notify::new());
        Self { stays: AtomicUsize::new(0), turn: Semaphore::new(1), forecast, answered }
    }
}

impl Lane {
    fn forecast(&self) -> MutexGuard<'_, Forecast> {
        self.forecast.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the forecast tells, but not for ever.
    async fn told<T>(&self, tells: impl Fn(&Forecast) -> Option<T>) -> Option<T> {
        let wait = async {
            loop {
                let mut answered = std::pin::pin!(self.answered.notified());
                // Invariant: listening starts before looking, so no answer is missed.
                answered.as_mut().enable();
                let told = tells(&self.forecast());
                match told {
                    Some(told) => return told,
                    None => answered.await,
                }
            }
        };
        timeout(WAIT_MAX, wait).await.ok()
    }
}

/// A stay in a lane, and the turn in it. Dropping it lets the next one decide, and closes the lane
/// behind the last.
pub(crate) struct Turn {
    lanes: Arc<Lanes>,
    stream: StreamId,
    lane: Arc<Lane>,
    /// Whether the turn is ours: not after too long a wait, and not once it was given up.
    held: bool,
    /// Whether a commit is being submitted and may have its place already.
    submits: bool,
}

impl Turn {
    /// The aggregate.
    pub(crate) fn stream(&self) -> &StreamId {
        &self.stream
    }

    async fn take(&mut self) {
        let permit = match self.lane.turn.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => timeout(WAIT_MAX, self.lane.turn.acquire()).await.ok().and_then(Result::ok),
        };
        if let Some(permit) = permit {
            permit.forget();
            self.held = true;
        }
    }

    /// Lets the next one decide.
    pub(crate) fn give_up(&mut self) {
        if std::mem::take(&mut self.held) {
            self.lane.turn.add_permits(1);
        }
    }

    /// Waits until nothing of the aggregate is under way; `false` if that takes too long. Nothing
    /// can be added to it before the turn is given up.
    pub(crate) async fn is_clear(&self) -> bool {
        self.held && self.lane.told(Forecast::is_clear).await.is_some()
    }

    /// What the aggregate will be once all that is under way has become true, with the commit on
    /// which this hangs as long as that is not certain.
    pub(crate) fn forecast(&self) -> Option<(Entry, Option<Link>)> {
        if self.held { self.lane.forecast().head() } else { None }
    }

    /// Whether the cache will do where there is no forecast.
    pub(crate) fn trusts_cache(&self) -> bool {
        self.held && !self.lane.forecast().is_doubted()
    }

    /// The store was asked, and the cache is as new.
    pub(crate) fn has_asked_store(&self) {
        self.lane.forecast().believe();
    }

    /// Waits for what becomes of a commit: whether it has become true.
    pub(crate) async fn has_become_true(&self, link: &Link) -> bool {
        self.lane.told(|_| link.outcome()).await.unwrap_or(false)
    }

    /// A commit is about to be submitted. Should its caller go away meanwhile, nobody knows whether
    /// it has its place.
    pub(crate) fn submits(&mut self) {
        self.submits = true;
    }

    /// The commit has its place. What it will have made of the aggregate is what the next one is
    /// decided on.
    pub(crate) fn submitted(
        mut self,
        submitted: Submitted,
        link: Link,
        left: Option<Entry>,
    ) -> UnderWay {
        self.submits = false;
        let counted = self.held;
        if counted {
            self.lane.forecast().place(link.clone(), left.clone());
        }
        UnderWay::new(submitted, under_way::Settlement::new(self, link, left, counted))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.submits {
            self.lane.forecast().doubt();
        }
        self.give_up();
        self.lanes.shard(&self.stream).leave(&self.stream, &self.lane);
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lanes")
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Turn({}, held: {})", self.stream, self.held)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use sequor_core::{AggregateId, CommandId, Name, StoreError, TenantId, Version};
    use tokio::sync::oneshot;
    use uuid::Uuid;

    use super::*;

    fn stream() -> StreamId {
        let tenant = TenantId::new(Uuid::from_u128(1)).unwrap();
        let (aggregate, id) = (Name::new("account").unwrap(), AggregateId::new("a").unwrap());
        StreamId { tenant, aggregate, id }
    }

    fn lanes() -> Arc<Lanes> {
        Arc::new(Lanes::new(Arc::new(Cache::new(10))))
    }

    fn open(lanes: &Lanes) -> usize {
        lanes.shards.iter().map(|shard| shard.lock().unwrap().open.len()).sum()
    }

    /// Polls once.
    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// A commit that moves the aggregate to version 1, and what answers it.
    fn commit(turn: Turn) -> (UnderWay, Link, oneshot::Sender<StoreError>) {
        let (answer, answered) = oneshot::channel();
        let submitted = Submitted::new(async move { Err(answered.await.unwrap()) });
        let link = Link::of(CommandId(Uuid::nil()));
        let left = Entry { version: Version::new(1), state: Arc::new(()) };
        (turn.submitted(submitted, link.clone(), Some(left)), link, answer)
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_waited_for_too_long_goes_on_without_a_turn() {
        let lanes = lanes();
        let first = lanes.enter(stream()).await;
        let second = lanes.enter(stream()).await;
        assert!(first.held && !second.held);
        drop(second);
        assert!(first.lane.turn.try_acquire().is_err(), "it gives up what it never had");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_one_closes_the_lane_even_if_it_gives_up_waiting() {
        let lanes = lanes();
        let first = lanes.enter(stream()).await;
        let mut second = Box::pin(lanes.enter(stream()));
        assert!(poll(second.as_mut()).is_pending());
        drop(first);
        assert_eq!(open(&lanes), 1);
        drop(second);
        assert_eq!(open(&lanes), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_one_decides_while_a_commit_is_under_way_and_hears_of_its_end() {
        let lanes = lanes();
        let (mut under_way, link, answer) = commit(lanes.enter(stream()).await);
        under_way.give_up_turn();
        let second = lanes.enter(stream()).await;
        assert!(
            second.forecast().is_some_and(|(left, awaits)| {
                left.version == Version::new(1) && awaits.is_some()
            })
        );
        let mut clear = Box::pin(second.is_clear());
        assert!(poll(clear.as_mut()).is_pending());
        answer.send(StoreError::Busy).unwrap();
        assert!(under_way.await.is_err());
        assert!(clear.await && !second.has_become_true(&link).await);
        assert!(second.forecast().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_taken_down_when_its_caller_is_gone() {
        let lanes = lanes();
        let (under_way, link, answer) = commit(lanes.enter(stream()).await);
        drop(under_way);
        answer.send(StoreError::Busy).unwrap();
        let next = lanes.enter(stream()).await;
        assert!(next.held && next.is_clear().await);
        assert_eq!(link.outcome(), Some(false));
        drop(next);
        assert_eq!(open(&lanes), 0);
    }

    #[test]
    fn outside_of_a_runtime_nobody_knows_what_became_of_a_commit() {
        let lanes = lanes();
        let Poll::Ready(turn) = poll(Box::pin(lanes.enter(stream())).as_mut()) else {
            panic!("it is free")
        };
        let (under_way, link, _answer) = commit(turn);
        drop(under_way);
        assert_eq!((link.outcome(), open(&lanes)), (Some(false), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_while_it_submits_casts_doubt() {
        let lanes = lanes();
        let mut first = lanes.enter(stream()).await;
        let mut second = Box::pin(lanes.enter(stream()));
        assert!(poll(second.as_mut()).is_pending());
        assert!(first.trusts_cache());
        first.submits();
        drop(first);
        let second = second.await;
        assert!(second.held && !second.trusts_cache());
        second.has_asked_store();
        assert!(second.trusts_cache());
    }
}
