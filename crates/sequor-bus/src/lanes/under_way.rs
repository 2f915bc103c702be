//! A commit under way: its answer is taken down whether or not its caller waits for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sequor_core::StoreError;
use sequor_core::ports::{Committed, Submitted};
use tokio::runtime::Handle;

use super::Turn;
use super::forecast::{Fate, Link};
use crate::cache::Entry;

type Answer = Result<Committed, StoreError>;

/// A commit under way. When its caller goes away, a task of its own waits for the answer, so that
/// forecast and cache learn of it.
#[must_use = "what became of the commit is known once this was awaited"]
pub(crate) struct UnderWay {
    submitted: Submitted,
    /// There until the answer was taken down.
    settlement: Option<Settlement>,
}

impl UnderWay {
    pub(super) fn new(submitted: Submitted, settlement: Settlement) -> Self {
        Self { submitted, settlement: Some(settlement) }
    }

    /// Lets the next one decide meanwhile.
    pub(crate) fn give_up_turn(&mut self) {
        if let Some(settlement) = &mut self.settlement {
            settlement.turn.give_up();
        }
    }
}

impl Future for UnderWay {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(Pin::new(&mut self.submitted).poll(context));
        if let Some(settlement) = self.settlement.take() {
            settlement.settle(&answer);
        }
        Poll::Ready(answer)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Some(settlement) = self.settlement.take() else { return };
        let nobody = Submitted::ready(Err(StoreError::Unknown));
        let submitted = std::mem::replace(&mut self.submitted, nobody);
        // Outside of a runtime the settlement is dropped, which says that nobody knows.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { settlement.settle(&submitted.await) });
        }
    }
}

/// What is to be done with an answer.
pub(super) struct Settlement {
    turn: Turn,
    link: Link,
    /// What the aggregate is if the commit becomes true, and has moved it.
    left: Option<Entry>,
    /// Whether the forecast waits for the answer.
    counted: bool,
}

impl Settlement {
    pub(super) fn new(turn: Turn, link: Link, left: Option<Entry>, counted: bool) -> Self {
        Self { turn, link, left, counted }
    }

    /// Takes an answer down. What has become true is remembered first, so that who hears of it
    /// finds it.
    fn settle(mut self, answer: &Answer) {
        let fate = Fate::of(answer);
        if let (Fate::True, Some(left)) = (fate, self.left.take()) {
            self.turn.lanes.cache.put(self.turn.stream.clone(), left);
        }
        self.tell(fate);
    }

    fn tell(&mut self, fate: Fate) {
        if std::mem::take(&mut self.counted) {
            self.turn.lane.forecast().answer(&self.link, fate);
            self.turn.lane.answered.notify_waiters();
        }
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        self.tell(Fate::Doubtful);
    }
}
