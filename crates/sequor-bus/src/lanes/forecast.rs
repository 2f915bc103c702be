//! What an aggregate will be once all that is under way has become true: pure.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use sequor_core::ports::Committed;
use sequor_core::{CommandId, StoreError};

use crate::cache::Entry;

/// What an aggregate will be once all that is under way has become true.
#[derive(Default)]
pub(super) struct Forecast {
    /// What the commits will leave, each decided on the one before it.
    ///
    /// Invariant: only the first may be true already. None has come to nothing.
    steps: VecDeque<Step>,
    /// Commits without an answer.
    under_way: usize,
    /// Whether somebody else may have changed the aggregate.
    doubted: bool,
}

/// What the aggregate will be after a commit.
struct Step {
    link: Link,
    left: Entry,
}

/// A commit on which others may hang.
#[derive(Clone, Debug)]
pub(crate) struct Link(Arc<Linked>);

#[derive(Debug)]
struct Linked {
    command: CommandId,
    /// Whether it has become true.
    outcome: OnceLock<bool>,
}

/// What an answer says about what the commit was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has become true.
    True,
    /// It has come to nothing, for a reason of its own.
    Nothing,
    /// It may have come to nothing because the aggregate is not what we believed.
    Doubtful,
}

impl Link {
    pub(crate) fn of(command: CommandId) -> Self {
        Self(Arc::new(Linked { command, outcome: OnceLock::new() }))
    }

    /// The command whose commit it is.
    pub(crate) fn command(&self) -> CommandId {
        self.0.command
    }

    /// Whether it has become true, once that is known.
    pub(crate) fn outcome(&self) -> Option<bool> {
        self.0.outcome.get().copied()
    }

    /// The first word stands. A commit that was given up with the one before it may still turn out
    /// true where an answer was lost.
    fn set(&self, outcome: bool) {
        let _ = self.0.outcome.set(outcome);
    }
}

impl Fate {
    pub(super) fn of(answer: &Result<Committed, StoreError>) -> Self {
        match answer {
            Ok(Committed::Fresh(_)) => Self::True,
            Ok(Committed::Known(_))
            | Err(StoreError::UniqueTaken { .. } | StoreError::Busy | StoreError::Invalid(_)) => {
                Self::Nothing
            }
            Err(_) => Self::Doubtful,
        }
    }
}

impl Forecast {
    /// What the next one is decided on, with the commit on which it hangs if that is not certain.
    pub(super) fn head(&self) -> Option<(Entry, Option<Link>)> {
        let Step { link, left } = self.steps.back()?;
        Some((left.clone(), Some(link.clone()).filter(|link| link.outcome().is_none())))
    }

    pub(super) fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// Tells once nothing is under way.
    pub(super) fn is_clear(&self) -> Option<()> {
        (self.under_way == 0).then_some(())
    }

    /// Forgets everything, for the lane's next aggregate.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        (self.under_way, self.doubted) = (0, false);
    }

    /// Somebody else may have changed the aggregate: what is certain so far is not any more.
    pub(super) fn doubt(&mut self) {
        self.doubted = true;
        self.steps.retain(|step| step.link.outcome().is_none());
    }

    /// The store was asked.
    pub(super) fn believe(&mut self) {
        self.doubted = false;
    }

    /// A commit has its place; it leaves the aggregate as it is, or moved on.
    pub(super) fn place(&mut self, link: Link, left: Option<Entry>) {
        self.under_way += 1;
        self.steps.extend(left.map(|left| Step { link, left }));
    }

    /// A commit was answered.
    pub(super) fn answer(&mut self, link: &Link, fate: Fate) {
        self.under_way = self.under_way.saturating_sub(1);
        let place = self.steps.iter().position(|step| Arc::ptr_eq(&step.link.0, &link.0));
        link.set(fate == Fate::True);
        match (fate, place) {
            (Fate::True, Some(place)) => {
                self.steps.drain(..place).for_each(|step| step.link.set(true));
            }
            (Fate::Nothing | Fate::Doubtful, Some(place)) => {
                self.steps.drain(place..).for_each(|step| step.link.set(false));
            }
            (_, None) => {}
        }
        if fate == Fate::Doubtful {
            self.doubt();
        }
    }
}

#[cfg(test)]
mod tests {
    use sequor_core::Version;
    use uuid::Uuid;

    use super::*;

    /// Commits that have moved an aggregate from version 0, one event each.
    fn chain(length: u64) -> (Forecast, Vec<Link>) {
        let mut forecast = Forecast::default();
        let links: Vec<Link> = (1..=length).map(|n| place(&mut forecast, n)).collect();
        (forecast, links)
    }

    fn place(forecast: &mut Forecast, version: u64) -> Link {
        let link = Link::of(CommandId(Uuid::from_u128(version.into())));
        let left = Entry { version: Version::new(version), state: Arc::new(()) };
        forecast.place(link.clone(), Some(left));
        link
    }

    /// The version that the next one is decided on, and whether it is certain.
    fn head(forecast: &Forecast) -> Option<(u64, bool)> {
        let (left, link) = forecast.head()?;
        Some((left.version.get(), link.is_none()))
    }

    #[test]
    fn the_next_one_is_decided_on_what_the_last_one_leaves() {
        let (mut forecast, links) = chain(3);
        assert_eq!(head(&forecast), Some((3, false)));
        forecast.answer(&links[0], Fate::True);
        assert_eq!(head(&forecast), Some((3, false)));
        forecast.answer(&links[2], Fate::True);
        assert_eq!(head(&forecast), Some((3, true)), "what the last one hung on is true as well");
        assert_eq!((links[1].outcome(), forecast.is_clear()), (Some(true), None));
        forecast.answer(&links[1], Fate::True);
        assert_eq!((head(&forecast), forecast.is_clear()), (Some((3, true)), Some(())));
    }

    #[test]
    fn who_comes_to_nothing_takes_with_it_who_hangs_on_it_and_nobody_else() {
        let (mut forecast, links) = chain(4);
        forecast.answer(&links[2], Fate::Nothing);
        assert_eq!(head(&forecast), Some((2, false)));
        let outcomes: Vec<_> = links.iter().map(Link::outcome).collect();
        assert_eq!(outcomes, [None, None, Some(false), Some(false)]);
        let newcomer = place(&mut forecast, 3);
        forecast.answer(&links[3], Fate::Doubtful);
        assert_eq!(head(&forecast), Some((3, false)), "the newcomer does not hang on it");
        forecast.answer(&newcomer, Fate::True);
        assert_eq!(links[1].outcome(), Some(true));
        assert_eq!(head(&forecast), Some((3, true)));
    }

    #[test]
    fn a_conflict_casts_doubt_on_what_was_certain() {
        let (mut forecast, links) = chain(2);
        forecast.answer(&links[0], Fate::True);
        forecast.answer(&links[1], Fate::Doubtful);
        assert_eq!((head(&forecast), forecast.is_doubted()), (None, true));
        forecast.believe();
        assert!(!forecast.is_doubted());
    }

    #[test]
    fn a_commit_that_moves_nothing_is_only_counted() {
        let (mut forecast, links) = chain(1);
        let look = Link::of(CommandId(Uuid::nil()));
        forecast.place(look.clone(), None);
        assert_eq!(head(&forecast), Some((1, false)));
        forecast.answer(&look, Fate::Nothing);
        assert_eq!((head(&forecast), links[0].outcome()), (Some((1, false)), None));
        forecast.answer(&links[0], Fate::True);
        assert_eq!(forecast.is_clear(), Some(()));
    }

    #[test]
    fn the_first_word_about_a_commit_stands() {
        let (mut forecast, links) = chain(2);
        forecast.answer(&links[0], Fate::Doubtful);
        forecast.answer(&links[1], Fate::True);
        assert_eq!((links[1].outcome(), head(&forecast)), (Some(false), None));
    }
}
