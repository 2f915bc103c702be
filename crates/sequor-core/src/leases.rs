//! Leases of a store that lives in one process.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use uuid::Uuid;

use crate::checkpoint::{CheckpointId, Lease, Mover, Release};

/// Who may move which checkpoint, in a store that one process owns: on a clock that never goes
/// back, and for this process's life only. Stores of several processes keep rows instead.
#[derive(Debug, Default)]
pub struct Leases {
    held: HashMap<CheckpointId, Held>,
    runners: HashMap<Release, HashMap<Uuid, Instant>>,
}

#[derive(Debug)]
struct Held {
    owner: Uuid,
    term: u64,
    until: Instant,
}

impl Leases {
    /// As [`KeepLeases::lease`](crate::ports::KeepLeases::lease), from now until then.
    pub fn take(
        &mut self,
        checkpoint: &CheckpointId,
        owner: Uuid,
        time: Range<Instant>,
    ) -> Option<Lease> {
        let Range { start: now, end: until } = time;
        let new = || Held { owner, term: 0, until };
        let held = self.held.entry(checkpoint.clone()).or_insert_with(new);
        if held.owner != owner && held.until > now {
            return None;
        }
        held.term += u64::from(held.owner != owner || held.term == 0);
        held.owner = owner;
        held.until = until;
        Some(Lease { checkpoint: checkpoint.clone(), term: held.term })
    }

    /// Whether a step may be opened: an operator's always, a holder's as long as nobody has taken
    /// the lease after it.
    #[must_use]
    pub fn allow(&self, checkpoint: &CheckpointId, mover: Mover) -> bool {
        match mover {
            Mover::Operator => true,
            Mover::Term(term) => self.held.get(checkpoint).is_some_and(|held| held.term == term),
        }
    }

    /// As [`KeepLeases::check_in`](crate::ports::KeepLeases::check_in), from now until then.
    pub fn check_in(&mut self, release: &Release, runner: Uuid, time: Range<Instant>) -> usize {
        let runners = self.runners.entry(release.clone()).or_default();
        runners.insert(runner, time.end);
        runners.retain(|_, until| *until > time.start);
        runners.len()
    }
}
