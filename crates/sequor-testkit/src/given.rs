//! Given, when, then for deciders: events in, a command, events or a rejection out.

use std::fmt;

use sequor_core::{
    Aggregate, Command, Decider, Decision, Event, Name, Target, UniqueChange, UniqueKey,
};

use crate::difference::{check, of_event, of_output};

/// Starts from what has happened to an aggregate.
///
/// Each event is written and read back as a store would, so that one which does not survive that
/// shows here.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/turnstile.rs"));
/// use sequor_testkit::given;
///
/// # fn main() {
/// given::<Turnstile>([])
///     .when(&Ask::pay("north", 100))
///     .then([Turned::Paid { cents: 100 }])
///     .then_holds("turnstile.paid", "north");
/// given::<Turnstile>([]).when(&Ask::pass("north")).then_rejected(|no| matches!(no, No::NotPaid));
/// # }
/// ```
///
/// # Panics
/// When an event does not survive being written and read back.
#[track_caller]
pub fn given<A: Aggregate>(events: impl IntoIterator<Item = A::Event>) -> Given<A> {
    let mut state = A::default();
    events.into_iter().for_each(|event| state.apply(&through_a_store(&event)));
    Given { state }
}

/// Writes an event and reads it back.
#[track_caller]
fn through_a_store<E: Event>(event: &E) -> E {
    let name = event.name();
    let payload = event.encode().unwrap_or_else(|why| {
        panic!("event `{}` cannot be written: {why}", name.name);
    });
    E::decode(name, payload.as_str()).unwrap_or_else(|why| {
        panic!("event `{}` cannot be read back from {payload}: {why}", name.name);
    })
}

/// An aggregate to which something has happened.
#[derive(Clone)]
#[must_use = "nothing is checked before `when` and `then`"]
pub struct Given<A> {
    state: A,
}

impl<A: Aggregate> Given<A> {
    /// Decides a command.
    #[must_use = "nothing is checked before `then`"]
    pub fn when<C: Target>(&self, command: &C) -> Decided<A, C>
    where
        A: Decider<C>,
    {
        Decided { decision: self.state.decide(command), state: self.state.clone() }
    }
}

impl<A> fmt::Debug for Given<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").finish_non_exhaustive()
    }
}

/// What a decider has decided.
pub struct Decided<A: Aggregate, C: Command> {
    decision: Result<Decision<A::Event, C::Output>, C::Rejection>,
    state: A,
}

impl<A: Aggregate, C: Command> Decided<A, C> {
    /// These events happen, in this order, and no others. They are compared by name, schema
    /// version and payload, so an event needs neither `Debug` nor `PartialEq`.
    ///
    /// # Panics
    /// When other events happen, or the command was rejected.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = A::Event>) -> Self {
        let expected: Vec<String> = events.into_iter().map(|event| of_event(&event)).collect();
        let actual: Vec<String> = self.accepted().events.iter().map(of_event).collect();
        check("events", &expected, &actual);
        self
    }

    /// The command answers with this value.
    ///
    /// # Panics
    /// When it answers with another one, or was rejected.
    #[track_caller]
    pub fn then_output(self, output: &C::Output) -> Self {
        check("outputs", &[of_output::<C>(output)], &[of_output::<C>(&self.accepted().output)]);
        self
    }

    /// The aggregate takes this value as unique, among whatever else it does.
    ///
    /// # Panics
    /// When it does not, or the command was rejected.
    #[track_caller]
    pub fn then_holds(self, scope: &'static str, value: &str) -> Self {
        let unique = UniqueKey::new(name(scope), value).expect("a unique value");
        self.then_changes(&UniqueChange::Hold(unique))
    }

    /// The aggregate lets go of what it holds in a scope.
    ///
    /// # Panics
    /// When it does not, or the command was rejected.
    #[track_caller]
    pub fn then_releases(self, scope: &'static str) -> Self {
        self.then_changes(&UniqueChange::Release(name(scope)))
    }

    /// The aggregate lets go of all that it holds.
    ///
    /// # Panics
    /// When it does not, or the command was rejected.
    #[track_caller]
    pub fn then_releases_all(self) -> Self {
        self.then_changes(&UniqueChange::ReleaseAll)
    }

    /// Exactly these changes of unique values, in this order; none, if it is empty.
    ///
    /// # Panics
    /// When there are others, or the command was rejected.
    #[track_caller]
    pub fn then_unique(self, changes: impl IntoIterator<Item = UniqueChange>) -> Self {
        let expected: Vec<String> = changes.into_iter().map(|one| format!("{one:?}")).collect();
        check("unique changes", &expected, &self.changes());
        self
    }

    /// The aggregate is as it should be, once the events have happened.
    ///
    /// # Panics
    /// When it is not, or the command was rejected.
    #[track_caller]
    pub fn then_state(self, is_right: impl FnOnce(&A) -> bool) -> Self {
        let mut state = self.state.clone();
        self.accepted().events.iter().for_each(|event| state.apply(&through_a_store(event)));
        assert!(is_right(&state), "the state after the events is not the expected one");
        self
    }

    /// The domain says no, in these words.
    ///
    /// # Panics
    /// When it says yes, or no in other words.
    #[track_caller]
    pub fn then_rejected(self, is_right: impl FnOnce(&C::Rejection) -> bool) -> Self {
        match &self.decision {
            Err(rejection) => {
                assert!(is_right(rejection), "rejected, but with another reason: {rejection:?}");
            }
            Ok(decision) => {
                let events: Vec<String> = decision.events.iter().map(of_event).collect();
                panic!("expected a rejection, but the command was taken: {events:#?}");
            }
        }
        self
    }

    #[track_caller]
    fn then_changes(self, change: &UniqueChange) -> Self {
        let (wanted, changes) = (format!("{change:?}"), self.changes());
        assert!(changes.contains(&wanted), "no {wanted} among the unique changes {changes:#?}");
        self
    }

    #[track_caller]
    fn changes(&self) -> Vec<String> {
        let text = |change: &Result<UniqueChange, _>| match change {
            Ok(change) => format!("{change:?}"),
            Err(invalid) => format!("({invalid})"),
        };
        self.accepted().unique.iter().map(text).collect()
    }

    #[track_caller]
    fn accepted(&self) -> &Decision<A::Event, C::Output> {
        match &self.decision {
            Ok(decision) => decision,
            Err(rejection) => panic!("the command was rejected: {rejection}"),
        }
    }
}

#[track_caller]
fn name(scope: &'static str) -> Name {
    Name::new(scope).unwrap_or_else(|invalid| panic!("{invalid}"))
}

impl<A: Aggregate, C: Command> fmt::Debug for Decided<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.decision.as_ref().map(|decision| decision.events.len());
        f.debug_struct("Decided").field("events", &taken).finish_non_exhaustive()
    }
}
