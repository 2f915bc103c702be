//! What waits for a writer, and what the next batch is.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use sequor_core::{IdempotencyKey, StreamId, TenantId};

use super::shift::Seat;
use crate::commit::job::Job;

#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) commits_max: usize,
    pub(super) bytes_max: usize,
    pub(super) linger: Duration,
    pub(super) wait: Duration,
    pub(super) lock_wait: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Job>,
    /// Seats of writers that rest, with their sessions where they have one.
    pub(super) resting: Vec<Seat>,
    pub(super) working: usize,
    /// Streams that working writers have in hand.
    pub(super) in_hand: HashSet<StreamId>,
    /// How many commits the last batch had.
    pub(super) answered: usize,
}

/// Another writer joins when this many commits wait. Below that one is about as fast where flushes take
/// little time, and faster where they take a millisecond, since more share each.
const JOIN_AT: usize = 8;

impl Queue {
    /// Whether there is work for one more writer.
    pub(super) fn wants_a_writer(&self, bounds: &Bounds) -> bool {
        self.working == 0 || self.waiting.len() >= JOIN_AT.min(bounds.commits_max)
    }

    /// For how many commits the next batch waits: whoever was just answered is expected back, beside
    /// those that wait already. So a few callers share their trips, and do not fall into two halves
    /// that wait for each other.
    pub(super) fn wanted(&self, bounds: &Bounds) -> usize {
        (self.answered + self.waiting.len()).clamp(1, bounds.commits_max)
    }

    /// Whether something waits that need not wait for what is in hand.
    pub(super) fn has_work(&self) -> bool {
        let is_free = |job: &Job| {
            !job.commit.streams.iter().any(|write| self.in_hand.contains(&write.stream))
        };
        self.waiting.iter().any(is_free)
    }

    /// The next batch, in order: bounded in commits and bytes, with no key twice, and no stream that
    /// another writer has in hand. What must wait keeps its place, and so does whatever
    /// touches the same streams behind it.
    pub(super) fn take_batch(&mut self, bounds: &Bounds) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::with_capacity(self.waiting.len().min(bounds.commits_max));
        let mut keys: HashSet<(TenantId, IdempotencyKey)> = HashSet::new();
        let mut held: HashSet<StreamId> = HashSet::new();
        let mut left = VecDeque::new();
        let mut bytes = 0;
        while let Some(job) = self.waiting.pop_front() {
            let is_full = jobs.len() >= bounds.commits_max
                || (!jobs.is_empty() && bytes + job.bytes > bounds.bytes_max);
            if is_full {
                left.push_back(job);
                break;
            }
            let streams = job.commit.streams.iter().map(|write| &write.stream);
            let must_wait = streams
                .clone()
                .any(|stream| self.in_hand.contains(stream) || held.contains(stream));
            let meta = &job.commit.meta;
            let key = meta.key.as_ref().map(|key| (meta.tenant, key.clone()));
            if must_wait || key.is_some_and(|key| !keys.insert(key)) {
                held.extend(streams.cloned());
                left.push_back(job);
            } else if job.is_ours || job.ticket.take() {
                bytes += job.bytes;
                jobs.push(job);
            }
        }
        left.append(&mut self.waiting);
        self.waiting = left;
        jobs
    }
}
