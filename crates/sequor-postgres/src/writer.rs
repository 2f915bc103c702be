//! The writers: each gathers the commits that wait, and makes them true in one trip.
//!
//! A writer is a task that lives as long as there is work, with a session that outlives it. So a
//! lone commit costs one hop, and many share trips. Commits that touch a stream which another
//! writer has in hand wait for it: in one process, streams are written in the order of submits.

mod queue;
mod shift;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sequor_core::StoreError;
use sequor_core::ports::{Committed, Listeners};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use self::queue::{Bounds, Queue};
use self::shift::{Seat, Shift};
use crate::commit::batch::{COMMIT, commit_batch};
use crate::commit::job::Job;
use crate::commit::one::COMMIT_ONE;
use crate::commit::verdicts::Judged;
use crate::connection::Connect;
use crate::pool::Pool;
use crate::settings::PostgresSettings;
use crate::store::Counts;
use crate::transaction::clean;

/// All writers of a store.
#[derive(Debug)]
pub(crate) struct Writers {
    queue: Mutex<Queue>,
    room: Arc<Semaphore>,
    /// How many commands may wait for a lock alone at a time.
    alone: Arc<Semaphore>,
    bounds: Bounds,
    connect: Connect,
    pool: Arc<Pool>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) listeners: Listeners,
    /// Told whenever a writer rests.
    rest: Notify,
}

impl Writers {
    pub(crate) fn new(connect: Connect, pool: Arc<Pool>, settings: &PostgresSettings) -> Arc<Self> {
        let mut queue = Queue::default();
        queue.resting.resize_with(settings.writers_max, Seat::default);
        let bounds = Bounds {
            commits_max: settings.batch_commits_max,
            bytes_max: settings.batch_bytes_max,
            linger: settings.linger,
            wait: settings.batch_wait_max,
            lock_wait: settings.lock_wait_max,
        };
        Arc::new(Self {
            queue: Mutex::new(queue),
            room: Arc::new(Semaphore::new(settings.queue_commits_max)),
            alone: Arc::new(Semaphore::new((settings.connections_max / 2).max(1))),
            bounds,
            connect,
            pool,
            counts: Arc::default(),
            listeners: Listeners::default(),
            rest: Notify::new(),
        })
    }

    /// Room for one more commit.
    pub(crate) async fn room(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let room = Arc::clone(&self.room).acquire_owned().await;
        room.map_err(|_| StoreError::unavailable("the store is closed"))
    }

    /// Takes a commit in, behind all that were taken in before. Does not wait.
    pub(crate) fn submit(self: &Arc<Self>, job: Job) {
        let mut queue = self.queue();
        queue.waiting.push_back(job);
        if queue.wants_a_writer(&self.bounds)
            && let Some(seat) = queue.resting.pop()
        {
            queue.working += 1;
            drop(queue);
            tokio::spawn(Arc::clone(self).work(seat));
        }
    }

    /// Finishes what is there, and closes the sessions.
    pub(crate) async fn close(&self) {
        self.room.close();
        let seats = loop {
            // Invariant: listening starts before looking, so no rest is missed.
            let rests = self.rest.notified();
            match self.seats_at_rest() {
                Some(seats) => break seats,
                None => rests.await,
            }
        };
        for session in seats.into_iter().filter_map(|seat| seat.session) {
            session.close().await;
        }
    }

    /// All seats, once nobody is at work.
    fn seats_at_rest(&self) -> Option<Vec<Seat>> {
        let mut queue = self.queue();
        (queue.working == 0).then(|| std::mem::take(&mut queue.resting))
    }

    /// A writer's working life: batch after batch, until nothing waits.
    async fn work(self: Arc<Self>, mut seat: Seat) {
        let mut shift = Shift::new(Arc::clone(&self));
        while let Some(jobs) = self.gather(&mut shift).await {
            self.counts.batch(jobs.len());
            self.commit_together(jobs, &mut seat, &mut shift).await;
            seat.tidy_up().await;
            shift.put_down();
        }
        shift.end(seat);
    }

    /// A batch: what waits, and what arrives within the linger, until those that the last batch has
    /// answered may all have come back. `None` when there is nothing to do.
    async fn gather(&self, shift: &mut Shift) -> Option<Vec<Job>> {
        let since = Instant::now();
        let wanted = self.queue().wanted(&self.bounds);
        loop {
            {
                let mut queue = self.queue();
                let is_late = since.elapsed() >= self.bounds.linger;
                if queue.waiting.len() >= wanted || is_late {
                    let jobs = queue.take_batch(&self.bounds);
                    queue.answered = jobs.len();
                    if jobs.is_empty() {
                        return None;
                    }
                    shift.take_in_hand(&jobs, &mut queue);
                    return Some(jobs);
                }
            }
            // Timers count in milliseconds, so the wait is made of turns for others.
            tokio::task::yield_now().await;
        }
    }

    async fn commit_together(self: &Arc<Self>, jobs: Vec<Job>, seat: &mut Seat, shift: &mut Shift) {
        if let Err(error) = self.take_session(seat).await {
            return self.answer_all(jobs, Err(error), shift);
        }
        match self.commit_some(&jobs, seat).await {
            // Alone it may fare better: what failed may be a neighbour's.
            Err(error) if jobs.len() > 1 && !matches!(error, StoreError::Unknown) => {
                for job in jobs {
                    self.counts.alone();
                    let one = vec![job];
                    let judged = match self.take_session(seat).await {
                        Ok(()) => self.commit_some(&one, seat).await,
                        Err(error) => Err(error),
                    };
                    self.answer_all(one, judged, shift);
                }
            }
            judged => self.answer_all(jobs, judged, shift),
        }
    }

    /// Answers those that are answered; whoever was blocked goes alone, and keeps its streams in hand
    /// meanwhile; whoever had no turn waits for the next batch, at its place. What failed as a whole
    /// has failed for each.
    fn answer_all(
        self: &Arc<Self>,
        jobs: Vec<Job>,
        judged: Result<Vec<Judged>, StoreError>,
        shift: &mut Shift,
    ) {
        let judged = match judged {
            Ok(judged) => judged,
            Err(error) => {
                jobs.into_iter().for_each(|job| job.answer(Err(error.clone()), self));
                return;
            }
        };
        let mut again = Vec::new();
        for (job, judged) in jobs.into_iter().zip(judged) {
            match judged {
                Judged::Untried => again.push(job),
                Judged::Blocked => match shift.hand_over(&job) {
                    // Behind one that went alone with the same stream: it keeps its place.
                    None => again.push(job),
                    Some(alone) => drop(tokio::spawn(Arc::clone(self).commit_alone(job, alone))),
                },
                judged @ (Judged::Fresh(_) | Judged::Known(_) | Judged::Refused(_)) => {
                    let answer = judged.answer(&job.commit);
                    job.answer(answer.unwrap_or(Err(StoreError::Busy)), self);
                }
            }
        }
        let mut queue = self.queue();
        for mut job in again.into_iter().rev() {
            job.is_ours = true;
            queue.waiting.push_front(job);
        }
    }

    /// Makes sure that there is a session.
    async fn take_session(&self, seat: &mut Seat) -> Result<(), StoreError> {
        if seat.session.is_none() {
            seat.session = Some(self.connect.connect(&[COMMIT, COMMIT_ONE]).await?);
        }
        Ok(())
    }

    /// One transaction for some, on the writer's own session.
    async fn commit_some(&self, jobs: &[Job], seat: &mut Seat) -> Result<Vec<Judged>, StoreError> {
        let session = seat.session.take();
        let mut session = session.ok_or_else(|| StoreError::unavailable("there is no session"))?;
        let judged = commit_batch(jobs, self.bounds.wait, &mut session).await;
        self.counts.transaction();
        if !matches!(judged, Err(StoreError::Unavailable(_) | StoreError::Unknown)) {
            seat.session = Some(session);
        }
        judged
    }

    /// A commit that somebody else's lock is in the way of: it waits for it by itself, on a session
    /// of the pool.
    async fn commit_alone(self: Arc<Self>, job: Job, alone: Shift) {
        self.counts.alone();
        let answer = self.wait_alone(&job).await;
        job.answer(answer, &self);
        drop(alone);
    }

    async fn wait_alone(&self, job: &Job) -> Result<Committed, StoreError> {
        let lock_wait = self.bounds.lock_wait;
        let _turn = tokio::time::timeout(lock_wait, self.alone.acquire())
            .await
            .map_err(|_| StoreError::Busy)?
            .map_err(|_| StoreError::unavailable("the store is closed"))?;
        let mut loan = self.pool.lend().await?;
        let jobs = std::slice::from_ref(job);
        let judged = commit_batch(jobs, lock_wait, loan.session()).await;
        self.counts.transaction();
        let cleaned = match &judged {
            Ok(_) => clean(loan.session()).await,
            Err(error) => Err(error.clone()),
        };
        loan.give_back(&cleaned);
        let judged = judged?.into_iter().next();
        judged.and_then(|judged| judged.answer(&job.commit)).unwrap_or(Err(StoreError::Busy))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
