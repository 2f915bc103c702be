//! What a builder refuses, and what it says.

use std::time::Duration;

use sequor::memory::{MemoryStore, Tables};
use sequor::{Aggregate, BuildError, Builder, Command, CommandService, Decider, Decision, Error};
use sequor::{Event, EventName, Idempotency, Invalid, Json, Limits, Projection};
use sequor::{ProjectionError, Retry, StoredEvent, Target, async_trait};
use serde::{Deserialize, Serialize};

use crate::bank::{Account, Ask, Refused, keyed, meta};
use crate::doing::{Handling, Run, doing, run};

fn builder() -> Builder<MemoryStore> {
    CommandService::builder(MemoryStore::new())
}

fn said(builder: Builder<MemoryStore>) -> String {
    builder.build().unwrap_err().to_string()
}

fn handler() -> crate::doing::Doing<
    impl for<'a> Fn(&'a Run, &'a mut sequor::Repo<MemoryStore>) -> Handling<'a, Run>,
> {
    doing(|_: &Run, _| -> Handling<'_, Run> { Box::pin(async { Ok(7) }) })
}

#[test]
fn two_handlers_for_a_command_are_refused() {
    assert_eq!(
        said(builder().handler(handler()).handler(handler())),
        "two handlers take command `bank.run`: register one, or rename one of the commands"
    );
    let error = builder().decider::<Account, Ask>().decider::<Account, Ask>().build();
    assert!(matches!(error, Err(BuildError::HandlerTwice { name: "account.open" })), "{error:?}");
}

/// A command, an event and an aggregate whose names are none.
#[derive(Serialize, Deserialize)]
struct Nameless;

impl Command for Nameless {
    type Output = ();
    type Rejection = Refused;
    const NAMES: &'static [&'static str] = &["no name"];
    fn name(&self) -> &'static str {
        "no name"
    }
    fn encode(&self) -> Result<Json, Invalid> {
        Json::of(&())
    }
    fn decode(_: &str, _: &str) -> Result<Self, Invalid> {
        Ok(Self)
    }
}

#[test]
fn a_name_that_is_none_is_refused() {
    let handler =
        doing(|_: &Nameless, _: &mut sequor::Repo<MemoryStore>| -> Handling<'_, Nameless> {
            Box::pin(async { Ok(()) })
        });
    assert_eq!(
        said(builder().handler(handler)),
        "`no name` is no command name: take 1 to 128 visible ASCII characters"
    );
}

#[derive(Clone, Default)]
struct Unnamed;

#[derive(Serialize, Deserialize)]
struct Occurred;

impl Event for Occurred {
    const NAMES: &'static [EventName] = &[EventName { name: "", schema_version: 1 }];
    fn name(&self) -> EventName {
        Self::NAMES[0]
    }
    fn encode(&self) -> Result<Json, Invalid> {
        Json::of(&())
    }
    fn decode(_: EventName, _: &str) -> Result<Self, sequor::DecodeError> {
        Ok(Self)
    }
}

impl Aggregate for Unnamed {
    const NAME: &str = "un\nnamed";
    type Event = Occurred;
    fn apply(&mut self, _: &Occurred) {}
}

#[derive(Command, Serialize, Deserialize)]
#[command(name = "unnamed.poke", id = id)]
struct Poke {
    id: u8,
}

impl Decider<Poke> for Unnamed {
    fn decide(&self, _: &Poke) -> Result<Decision<Occurred>, std::convert::Infallible> {
        Ok(Decision::nothing())
    }
}

#[test]
fn an_aggregate_whose_name_is_none_is_refused() {
    assert_eq!(Poke { id: 7 }.aggregate_id().unwrap().as_str(), "7");
    let error = builder().decider::<Unnamed, Poke>().build().unwrap_err();
    assert_eq!(error, BuildError::Name { name: "un\nnamed", what: "aggregate" });
}

struct ProjectionNamed(&'static str);

#[async_trait]
impl Projection<Tables> for ProjectionNamed {
    fn name(&self) -> &str {
        self.0
    }
    async fn project(&self, _: &StoredEvent, _: &mut Tables) -> Result<(), ProjectionError> {
        Ok(())
    }
}

#[test]
fn projections_have_a_name_each() {
    assert_eq!(
        said(builder().projection(ProjectionNamed(""))),
        "a projection has no name: let `name()` return 1 to 128 visible ASCII characters"
    );
    assert_eq!(
        said(builder().projection(ProjectionNamed("sums")).projection(ProjectionNamed("sums"))),
        "two projections are called `sums`: rename one"
    );
}

#[test]
fn idempotency_without_tenancy_is_refused() {
    assert_eq!(
        said(builder().without_tenancy()),
        "idempotency needs tenancy, a key means nothing without its tenant: \
         drop `without_tenancy()` or add `without_idempotency()`"
    );
    builder().without_tenancy().without_idempotency().build().unwrap();
}

#[test]
fn settings_out_of_range_are_refused() {
    let long = Duration::from_secs(301);
    let wait = Idempotency { wait_max: long, ..Idempotency::default() };
    assert_eq!(
        said(builder().idempotency(wait)),
        "`idempotency.wait_max` is out of range: take 0 s to 5 min"
    );
    for retry in [
        Retry { retries_max: 101, ..Retry::DEFAULT },
        Retry { pause_max: Duration::from_secs(11), ..Retry::DEFAULT },
    ] {
        assert_eq!(
            said(builder().retry(retry)),
            "`retry` is out of range: take 0 to 100 retries, pauses up to 10 s"
        );
    }
    let limits = Limits { events_max: 0, ..Limits::DEFAULT };
    assert_eq!(
        said(builder().limits(limits)),
        "`limits` is out of range: take the ranges that `Limits` documents"
    );
    for commands_max in [0, 10_001] {
        assert_eq!(
            said(builder().commands_max(commands_max)),
            "`commands_max` is out of range: take 1 to 10,000"
        );
    }
    assert_eq!(
        said(builder().aggregates_cached_max(10_000_001)),
        "`aggregates_cached_max` is out of range: take 0 to 10,000,000"
    );
}

#[test]
fn the_first_thing_that_is_wrong_is_told() {
    let error = builder().commands_max(0).without_tenancy().projection(ProjectionNamed("")).build();
    assert!(matches!(error, Err(BuildError::Setting { setting: "commands_max", .. })), "{error:?}");
}

#[tokio::test]
async fn without_idempotency_a_key_is_refused() {
    let bank = builder().handler(handler()).without_idempotency().build().unwrap();
    let refused = bank.execute(run(&[], 1), keyed("k")).await;
    assert!(matches!(refused, Err(Error::Invalid(Invalid::KeyWithoutIdempotency))), "{refused:?}");
    assert!(bank.execute(run(&[], 1), meta()).await.unwrap().is_executed());
}
