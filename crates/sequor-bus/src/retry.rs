//! How often a conflict is tried again, and how long to wait before.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sequor_core::{CommandId, StreamId};
use uuid::Uuid;

use crate::envelope::Envelope;
use crate::error::Halt;

/// How often the bus decides again after a conflict, outside any transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Tries after the first. Default 3, 0 (off) to 100; more of them make a caller under
    /// contention wait longer before it is told.
    pub retries_max: u32,
    /// The pause before the first retry, doubled before each further one, and jittered between
    /// half and all of it. Default 1 ms, from 0 up; `pause_max` bounds it.
    pub pause: Duration,
    /// The longest pause. Default 100 ms, 0 to 10 s; a longer one spares the store and costs the
    /// caller.
    pub pause_max: Duration,
}

impl Retry {
    /// Three retries, 1 to 100 ms apart.
    pub const DEFAULT: Self = Self {
        retries_max: 3,
        pause: Duration::from_millis(1),
        pause_max: Duration::from_millis(100),
    };

    /// No retries: every conflict reaches the caller.
    pub const OFF: Self = Self { retries_max: 0, ..Self::DEFAULT };

    /// The policy for commands that share a fate: a caller that named a version gets its conflict
    /// at once.
    pub(crate) fn for_commands(&self, envelopes: &[Envelope]) -> Self {
        let names_version = envelopes.iter().any(|one| one.options.if_version.is_some());
        if names_version { Self::OFF } else { *self }
    }

    /// Pauses after a conflict or a busy store, or gives back what cannot be tried again. Who fell
    /// with somebody else, or had believed what is no longer so, decides again at once.
    pub(crate) async fn pause_after(
        &self,
        halt: Halt,
        tries: &mut Tries,
        envelope: &Envelope,
    ) -> Result<(), Halt> {
        if matches!(halt, Halt::Fell) {
            tries.falls += 1;
            tracing::debug!(falls = tries.falls, "what was decided on came to nothing");
            return Ok(());
        }
        if !halt.is_transient() || tries.retries >= self.retries_max {
            return Err(halt);
        }
        tries.retries += 1;
        tries.conflicts += u32::from(halt.is_conflict());
        if matches!(halt, Halt::Behind(_)) {
            tracing::debug!("what was decided on is no longer so");
            return Ok(());
        }
        let (retry, CommandId(command)) = (tries.retries, envelope.command_id());
        match halt.is_conflict() {
            true => tracing::debug!(retry, "conflict"),
            false => tracing::debug!(retry, "busy"),
        }
        tokio::time::sleep(self.pause_before(retry, command)).await;
        Ok(())
    }

    /// The pause before retry number `retry` (from 1). The jitter comes from the command's id,
    /// so that no source of chance is needed and rivals still part ways.
    fn pause_before(&self, retry: u32, command: Uuid) -> Duration {
        let doubled = self.pause.saturating_mul(1_u32.checked_shl(retry - 1).unwrap_or(u32::MAX));
        let longest = doubled.min(self.pause_max);
        // Of an id's low half, the six lowest bytes are chance in every version of UUID.
        let (_, low) = command.as_u64_pair();
        let parts = u32::try_from((low >> (8 * (retry % 6))) % 256).unwrap_or_default();
        longest / 2 + longest / 512 * parts
    }
}

/// What a call has met so far, and which aggregates its tries in a transaction have loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    pub(crate) tries: Tries,
    loaded: Arc<Mutex<BTreeSet<StreamId>>>,
}

impl Past {
    /// Notes that a try has loaded an aggregate.
    pub(crate) fn note(&self, stream: &StreamId) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.len() < NOTED_MAX {
            loaded.insert(stream.clone());
        }
    }

    /// What the next try should hold before it begins, in the order of streams: nothing at the
    /// first one. Whoever waits in one order never waits in a circle.
    pub(crate) fn to_hold(&self) -> Vec<StreamId> {
        if self.tries.retries == 0 {
            return Vec::new();
        }
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.iter().cloned().collect()
    }
}

/// So many aggregates are held at most; each is a round trip.
const NOTED_MAX: usize = 64;

/// What a call has met so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tries {
    /// Tries after the first.
    pub(crate) retries: u32,
    /// How many of them followed a conflict, not a busy store.
    pub(crate) conflicts: u32,
    /// How often what was decided on did not become true. Those are no tries: nobody was in the
    /// way.
    pub(crate) falls: u32,
}

/// How often a decider may fall with those before it. From then on it waits until nothing is under
/// way, so that it cannot fall again.
const FALLS_MAX: u32 = 3;

impl Tries {
    /// Whether the next try must not stand on anything that may come to nothing.
    pub(crate) fn want_certainty(self) -> bool {
        self.conflicts > 0 || self.falls >= FALLS_MAX
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound_and_rivals_part_ways() {
        let rivals: Vec<Uuid> =
            (0..64_u128).map(|n| Uuid::from_u128(n * 0x9e37_79b9_7f4a_7c15)).collect();
        for retry in 1..=200 {
            let doubled = 1_u32.checked_shl(retry - 1).map_or(u32::MAX, |n| n.min(100));
            let longest = Duration::from_millis(doubled.min(100).into());
            let pauses: Vec<Duration> =
                rivals.iter().map(|id| Retry::DEFAULT.pause_before(retry, *id)).collect();
            assert!(pauses.iter().all(|pause| (longest / 2..=longest).contains(pause)), "{retry}");
            let different: BTreeSet<_> = pauses.iter().collect();
            assert!(different.len() > 32, "{retry}: {} of 64", different.len());
        }
    }

    #[test]
    fn no_pause_stays_none() {
        let at_once = Retry { pause: Duration::ZERO, ..Retry::DEFAULT };
        assert_eq!(at_once.pause_before(5, Uuid::from_u128(7)), Duration::ZERO);
    }
}
