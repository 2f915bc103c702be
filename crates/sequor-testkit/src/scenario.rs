//! Given, when, then for whole services: commands in, a receipt and stored events out.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;

use sequor_bus::{CommandService, Options};
use sequor_core::ports::Store;
use sequor_core::{Command, Disposition, Error, Event, Meta, Receipt, StoredEvent};

use crate::difference::{check, of_event, of_output, of_stored};
use crate::log;

type Step<'s> = Pin<Box<dyn Future<Output = ()> + Send + 's>>;

/// Commands that have been executed, one that is being tried, and what must follow.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/turnstile.rs"));
/// use sequor_bus::CommandService;
/// use sequor_core::Meta;
/// use sequor_memory::MemoryStore;
/// use sequor_testkit::Scenario;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service =
///     CommandService::builder(MemoryStore::new()).decider::<Turnstile, Ask>().build()?;
/// let meta = || Meta::new("018f2f6e-0000-7000-8000-000000000001".parse().unwrap());
///
/// Scenario::on(&service)
///     .given(Ask::pay("north", 100), meta())
///     .when(Ask::pass("north"), meta())
///     .await
///     .then_executed()
///     .then_output(&1)
///     .then_events([Turned::Passed])
///     .await;
/// Scenario::on(&service)
///     .when(Ask::pass("north"), meta())
///     .await
///     .then_rejected(|no| matches!(no, No::NotPaid));
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is executed before `when`"]
pub struct Scenario<'s, S: Store> {
    service: &'s CommandService<S>,
    given: Vec<Step<'s>>,
}

impl<'s, S: Store> Scenario<'s, S> {
    /// A scenario on a service, whatever its store holds already.
    pub fn on(service: &'s CommandService<S>) -> Self {
        Self { service, given: Vec::new() }
    }

    /// A command that is executed before, and must succeed.
    ///
    /// # Panics
    /// When it fails, as soon as [`Scenario::when`] is awaited.
    #[track_caller]
    pub fn given<C: Command>(mut self, command: C, meta: Meta) -> Self {
        let (service, place) = (self.service, Location::caller());
        self.given.push(Box::pin(async move {
            let name = command.name();
            if let Err(error) = service.execute(command, meta).await {
                panic!("`{name}`, given at {place}, failed: {error}");
            }
        }));
        self
    }

    /// The command that is tried.
    ///
    /// # Panics
    /// When a given command fails.
    #[must_use = "nothing is checked before `then_…`"]
    pub async fn when<C: Command>(self, command: C, meta: Meta) -> Answered<'s, S, C> {
        self.when_with(command, meta, Options::default()).await
    }

    /// The command that is tried, with options of its own.
    ///
    /// # Panics
    /// When a given command fails.
    #[must_use = "nothing is checked before `then_…`"]
    pub async fn when_with<C: Command>(
        self,
        command: C,
        meta: Meta,
        options: Options,
    ) -> Answered<'s, S, C> {
        let Self { service, given } = self;
        for step in given {
            step.await;
        }
        let answer = service.execute_with(command, meta, options).await;
        Answered { service, answer }
    }
}

impl<S: Store> fmt::Debug for Scenario<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("given", &self.given.len()).finish_non_exhaustive()
    }
}

/// What the service has answered.
pub struct Answered<'s, S: Store, C: Command> {
    service: &'s CommandService<S>,
    answer: Result<Receipt<C::Output>, Error<C::Rejection>>,
}

impl<S: Store, C: Command> Answered<'_, S, C> {
    /// It took effect now.
    ///
    /// # Panics
    /// When it had taken effect before, or failed.
    #[track_caller]
    pub fn then_executed(self) -> Self {
        self.then_disposition(Disposition::Executed)
    }

    /// It had taken effect before.
    ///
    /// # Panics
    /// When it took effect now, or failed.
    #[track_caller]
    pub fn then_replayed(self) -> Self {
        self.then_disposition(Disposition::Replayed)
    }

    /// The receipt carries this output.
    ///
    /// # Panics
    /// When it carries another one or none, or the command failed.
    #[track_caller]
    pub fn then_output(self, output: &C::Output) -> Self {
        let actual =
            self.receipt().output.as_ref().map_or("(no output)".to_owned(), of_output::<C>);
        check("outputs", &[of_output::<C>(output)], &[actual]);
        self
    }

    /// The receipt carries no output.
    ///
    /// # Panics
    /// When it carries one, or the command failed.
    #[track_caller]
    pub fn then_no_output(self) -> Self {
        assert!(self.receipt().output.is_none(), "the receipt carries an output");
        self
    }

    /// The domain said no, in these words.
    ///
    /// # Panics
    /// When the command succeeded, or failed in another way.
    #[track_caller]
    pub fn then_rejected(self, is_right: impl FnOnce(&C::Rejection) -> bool) -> Self {
        self.then_error(|error| matches!(error, Error::Rejected(no) if is_right(no)))
    }

    /// The command failed like this.
    ///
    /// # Panics
    /// When it succeeded, or failed in another way.
    #[track_caller]
    pub fn then_error(self, is_right: impl FnOnce(&Error<C::Rejection>) -> bool) -> Self {
        match &self.answer {
            Ok(receipt) => {
                let (done, id) = (receipt.disposition, receipt.command_id);
                panic!("expected an error, but the command was {done:?} as {id}");
            }
            Err(error) => assert!(is_right(error), "failed, but with another error: {error:?}"),
        }
        self
    }

    /// The store holds these events of the command that took effect, in this order, and no others
    /// of their type. Events of other types are not looked at.
    ///
    /// # Panics
    /// When it holds others, or the command failed.
    pub async fn then_events<E: Event>(self, events: impl IntoIterator<Item = E>) -> Self {
        let expected: Vec<String> = events.into_iter().map(|event| of_event(&event)).collect();
        let actual: Vec<String> = self.stored::<E>().await.iter().map(of_stored).collect();
        check("stored events", &expected, &actual);
        self
    }

    /// The receipt.
    ///
    /// # Panics
    /// When the command failed.
    #[must_use]
    #[track_caller]
    pub fn receipt(&self) -> &Receipt<C::Output> {
        match &self.answer {
            Ok(receipt) => receipt,
            Err(error) => panic!("the command failed: {error}"),
        }
    }

    /// The answer, for checks of your own.
    ///
    /// # Errors
    /// The command's.
    pub fn into_answer(self) -> Result<Receipt<C::Output>, Error<C::Rejection>> {
        self.answer
    }

    /// The command's events of a type; none without an aggregate.
    async fn stored<E: Event>(&self) -> Vec<StoredEvent> {
        let Receipt { command_id, streams, .. } = self.receipt();
        let Some(first) = streams.first() else { return Vec::new() };
        let is_kind = |name: &str| E::NAMES.iter().any(|known| known.name == name);
        let store = self.service.store();
        log::events(store, store.partition(first.stream.tenant), |event| {
            event.meta.command_id == *command_id && is_kind(event.name.as_str())
        })
        .await
    }

    #[track_caller]
    fn then_disposition(self, expected: Disposition) -> Self {
        let Receipt { disposition, command_id, .. } = self.receipt();
        assert!(
            *disposition == expected,
            "expected {expected:?}, but the command was {disposition:?} as {command_id}"
        );
        self
    }
}

impl<S: Store, C: Command> fmt::Debug for Answered<'_, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = self.answer.as_ref().map(|receipt| receipt.disposition);
        f.debug_struct("Answered").field("answer", &answer).finish_non_exhaustive()
    }
}
