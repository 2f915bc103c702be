//! State folded from events.

use crate::event::{DecodeError, Event, StoredEvent};

/// State that is folded from its events, and guarded by their count.
///
/// [`apply`](Aggregate::apply) is total and pure: whatever the store holds has happened, so there
/// is nothing left to refuse.
///
/// ```
/// use sequor_core::{Aggregate, DecodeError, Event, EventName, Invalid, Json};
///
/// # #[derive(Debug)]
/// struct Counted;
/// # impl Event for Counted {
/// #     const NAMES: &'static [EventName] = &[EventName { name: "counted", schema_version: 1 }];
/// #     fn name(&self) -> EventName { Self::NAMES[0] }
/// #     fn encode(&self) -> Result<Json, Invalid> { Json::of(&()) }
/// #     fn decode(_: EventName, _: &str) -> Result<Self, DecodeError> { Ok(Counted) }
/// # }
/// #[derive(Clone, Default)]
/// struct Counter(u64);
///
/// impl Aggregate for Counter {
///     const NAME: &str = "counter";
///     type Event = Counted;
///     fn apply(&mut self, _: &Counted) {
///         self.0 += 1;
///     }
/// }
/// ```
pub trait Aggregate: Clone + Default + Send + Sync + 'static {
    /// The stable name that streams of this kind carry: 1 to 128 bytes of visible ASCII.
    const NAME: &'static str;

    /// What can happen to it.
    type Event: Event;

    /// Takes in what has happened.
    fn apply(&mut self, event: &Self::Event);
}

/// Folds stored events into the state of an aggregate, older ones as their [`Evolution`] says.
///
/// [`Evolution`]: crate::event::Evolution
///
/// # Errors
/// [`DecodeError`] with the first event that this build cannot read.
pub fn fold<A: Aggregate>(mut state: A, events: &[StoredEvent]) -> Result<A, DecodeError> {
    for event in events {
        event.decode_all()?.for_each(|event| state.apply(&event));
    }
    Ok(state)
}
