//! Leases of a store that lives in one process.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::checkpoint::{CheckpointId, Lease, Mover};

/// Who may move which checkpoint, in a store that one process owns: on a clock that never goes
/// back, and for this process's life only. Stores of several processes keep rows instead.
#[derive(Debug, Default)]
pub struct Leases {
    held: HashMap<CheckpointId, Held>,
    runners: HashMap<Uuid, Instant>,
}

#[derive(Debug)]
struct Held {
    owner: Uuid,
    term: u64,
    until: Instant,
}

impl Leases {
    /// As [`KeepLeases::lease`](crate::ports::KeepLeases::lease).
    pub fn take(
        &mut self,
        checkpoint: &CheckpointId,
        owner: Uuid,
        ttl: Duration,
        now: Instant,
    ) -> Option<Lease> {
        let until = now + ttl;
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

    /// As [`KeepLeases::check_in`](crate::ports::KeepLeases::check_in).
    pub fn check_in(&mut self, runner: Uuid, ttl: Duration, now: Instant) -> usize {
        self.runners.insert(runner, now + ttl);
        self.runners.retain(|_, until| *until > now);
        self.runners.len()
    }
}
