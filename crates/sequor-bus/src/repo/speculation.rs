//! What a decider stands on that decides before anything is claimed.

use std::sync::Arc;

use sequor_core::ports::Submitted;
use sequor_core::{CommandId, StreamId, Version};

use crate::cache::Entry;
use crate::error::Halt;
use crate::lanes::{Link, Turn, UnderWay};
use crate::repo::Belief;
use crate::retry::Tries;

/// What a decider stands on that decides before anything is claimed: its turn, and the commit that
/// must become true for its decision to count.
pub(crate) struct Speculation {
    turn: Turn,
    footing: Footing,
    /// The commit under way on which the decision hangs.
    awaits: Option<Link>,
    /// Whether others may have decided since.
    is_late: bool,
}

/// What a decider wants to stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Footing {
    /// The forecast, else the cache.
    Newest,
    /// The forecast, else the store.
    Stored,
    /// The store, once nothing is under way; and nobody else decides before the answer.
    Certain,
}

impl Speculation {
    /// Begins with a turn, after what the tries before have met.
    pub(crate) async fn begin(turn: Turn, tries: Tries, trusts_cache: bool) -> Self {
        let footing = match trusts_cache {
            _ if tries.want_certainty() => Footing::Certain,
            true if tries.retries == 0 => Footing::Newest,
            _ => Footing::Stored,
        };
        if footing == Footing::Certain {
            // After too long a wait it goes on all the same; its commit finds out.
            turn.is_clear().await;
        }
        Self { turn, footing, awaits: None, is_late: false }
    }

    /// The newest state that we know of, and whether it will do without asking the store.
    pub(super) fn newest<A: Default + Send + Sync + 'static>(
        &mut self,
        cached: Option<(Version, Arc<A>)>,
        belief: Belief,
    ) -> (Version, Arc<A>, bool) {
        let (version, state) = cached.unwrap_or_default();
        let forecast = self.turn.forecast().filter(|_| self.footing != Footing::Certain);
        if let Some((Entry { version: will_be, state }, awaits)) = forecast
            && (awaits.is_some() || will_be >= version)
            && let Ok(state) = state.downcast()
        {
            self.awaits = awaits;
            return (will_be, state, true);
        }
        let trusts = self.footing == Footing::Newest && self.turn.trusts_cache();
        (version, state, trusts && (version != Version::NONE || belief == Belief::New))
    }

    /// The aggregate that decides.
    pub(super) fn stream(&self) -> &StreamId {
        self.turn.stream()
    }

    /// Whether no try of the command has met anything that counts as one.
    pub(super) fn is_first_try(&self) -> bool {
        self.footing == Footing::Newest
    }

    /// The store was asked, so what is known is new.
    pub(super) fn has_asked_store(&self) {
        self.turn.has_asked_store();
    }

    /// Whether the decision hangs on what is not true yet.
    pub(super) fn is_uncertain(&self) -> bool {
        self.awaits.is_some()
    }

    /// Waits until what the decision hangs on has become true, and lets others decide meanwhile.
    ///
    /// # Errors
    /// [`Halt::Fell`] when it has come to nothing.
    pub(super) async fn become_certain(&mut self) -> Result<(), Halt> {
        let Some(awaited) = self.awaits.take() else { return Ok(()) };
        if awaited.outcome().is_none() {
            self.turn.give_up();
            self.is_late = true;
        }
        if self.turn.has_become_true(&awaited).await { Ok(()) } else { Err(Halt::Fell) }
    }

    /// The command that must have made what was decided on, where it is not certain that it will.
    ///
    /// # Errors
    /// [`Halt::Fell`] when it has come to nothing, or others may have decided since.
    pub(super) fn after(&self) -> Result<Option<CommandId>, Halt> {
        match &self.awaits {
            _ if self.is_late => Err(Halt::Fell),
            None => Ok(None),
            Some(awaited) => match awaited.outcome() {
                None => Ok(Some(awaited.command())),
                Some(true) => Ok(None),
                Some(false) => Err(Halt::Fell),
            },
        }
    }

    /// A commit is about to be submitted.
    pub(super) fn submits(&mut self) {
        self.turn.submits();
    }

    /// The commit has its place; the next one may decide on what it will leave.
    pub(super) fn submitted(
        self,
        submitted: Submitted,
        link: Link,
        left: Option<Entry>,
    ) -> UnderWay {
        let mut under_way = self.turn.submitted(submitted, link, left);
        if self.footing != Footing::Certain {
            under_way.give_up_turn();
        }
        under_way
    }
}
