//! The pure heart: state and command in, events or a rejection out.

use crate::aggregate::Aggregate;
use crate::command::Target;
use crate::error::Invalid;
use crate::names::Name;
use crate::unique::{UniqueChange, UniqueKey};

/// Decides a command on an aggregate. Pure, so it may be run again freely.
///
/// The bus runs it speculatively, before it is known whether the key has been used, and again
/// after a conflict; what it decided is thrown away when the store holds an older answer. So a
/// retry is decided too, on the state that its first execution has left: a decider that panics
/// there (an overflow, an index) takes the replay with it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not decide `{C}`",
    note = "write `impl Decider<{C}> for {Self}`, where {Self} is the aggregate"
)]
pub trait Decider<C: Target>: Aggregate {
    /// What follows from the command in this state.
    ///
    /// # Errors
    /// The domain's own rejection. Nothing is written, and a retry with the same key decides anew.
    fn decide(&self, command: &C) -> Result<Decision<Self::Event, C::Output>, C::Rejection>;
}

/// What a [`Decider`] wants to become true: events, an output, unique keys.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a decision does nothing until the decider returns it"]
pub struct Decision<E, O = ()> {
    /// In the order in which they happen. None is fine: the command is recorded all the same.
    pub events: Vec<E>,
    /// What the caller gets.
    pub output: O,
    /// Claims and releases, with what is wrong with them, reported when the bus takes them in.
    pub unique: Vec<Result<UniqueChange, Invalid>>,
}

impl<E> Decision<E> {
    /// One thing happens.
    pub fn event(event: E) -> Self {
        Self::events([event])
    }

    /// Several things happen, or none.
    pub fn events(events: impl IntoIterator<Item = E>) -> Self {
        Self { events: events.into_iter().collect(), output: (), unique: Vec::new() }
    }

    /// Nothing happens; the command is recorded and can be replayed all the same.
    pub fn nothing() -> Self {
        Self::events([])
    }
}

impl<E, O> Decision<E, O> {
    /// Answers with a value.
    pub fn output<P>(self, output: P) -> Decision<E, P> {
        Decision { events: self.events, output, unique: self.unique }
    }

    /// Holds `value` in `scope`, unique in the tenant, instead of what the aggregate held there.
    pub fn hold(mut self, scope: &'static str, value: &str) -> Self {
        self.unique.push(
            Name::new(scope).and_then(|scope| UniqueKey::new(scope, value)).map(UniqueChange::Hold),
        );
        self
    }

    /// Lets go of what the aggregate holds in `scope`.
    pub fn release(mut self, scope: &'static str) -> Self {
        self.unique.push(Name::new(scope).map(UniqueChange::Release));
        self
    }

    /// Ends the aggregate: lets go of every unique value that it holds.
    pub fn release_all(mut self) -> Self {
        self.unique.push(Ok(UniqueChange::ReleaseAll));
        self
    }
}

impl<E> From<Vec<E>> for Decision<E> {
    fn from(events: Vec<E>) -> Self {
        Self::events(events)
    }
}
