//! How often a conflict is tried again, and how long to wait before.

use std::time::Duration;

use sequor_core::CommandId;
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

    /// Pauses after a conflict, or gives back what cannot be tried again.
    pub(crate) async fn pause_after(
        &self,
        halt: Halt,
        retries: &mut u32,
        envelope: &Envelope,
    ) -> Result<(), Halt> {
        if !halt.is_transient() || *retries >= self.retries_max {
            return Err(halt);
        }
        *retries += 1;
        let CommandId(command) = envelope.command_id();
        tracing::debug!(command = envelope.name(), %command, retry = *retries, "conflict");
        tokio::time::sleep(self.pause_before(*retries, command)).await;
        Ok(())
    }

    /// The pause before retry number `retry` (from 1). The jitter comes from the command's id,
    /// so that no source of chance is needed and rivals still part ways.
    fn pause_before(&self, retry: u32, command: Uuid) -> Duration {
        let doubled = self.pause.saturating_mul(1_u32.checked_shl(retry - 1).unwrap_or(u32::MAX));
        let longest = doubled.min(self.pause_max);
        let (_, low) = command.as_u64_pair();
        let parts = u32::try_from(low.rotate_left(retry * 8) % 256).unwrap_or_default();
        longest / 2 + longest / 512 * parts
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::DEFAULT
    }
}
