//! Streams that an earlier build has begun go on under this one.

use std::convert::Infallible;
use std::marker::PhantomData;

use sequor::event::{Step, raise};
use sequor::ports::Transact;
use sequor::{
    Aggregate, BuildError, Command, CommandService, Decider, Decision, DecodeError, Error, Event,
    EventName, Evolution, EvolutionError, Invalid, Json, Projection, ProjectionError, StoredEvent,
    Version, async_trait,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bank::{keyed, meta, tenant};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    a_stream_of_old_events_goes_on_as_one_that_was_written_new,
    an_unknown_event_of_a_stream_is_refused_unless_it_is_skipped,
    a_projection_takes_in_what_an_event_is_read_as,
);

/// The events of an earlier build.
#[derive(Clone, Event, Serialize, Deserialize)]
#[event(prefix = "sheet.")]
enum Old {
    Begun { number: u64 },
    Moved { cents: i64 },
    Pinged,
}

/// The events of this build.
#[derive(Clone, Debug, Event, PartialEq, Serialize, Deserialize)]
#[event(prefix = "sheet.", split("sheet.moved", 1 = taken_and_put), skip("sheet.pinged"))]
enum New {
    #[event(version = 2, upcast(1 = in_euro), was = "sheet.begun")]
    Opened {
        number: u64,
        currency: String,
    },
    Taken(i64),
    Put(i64),
}

#[derive(Deserialize)]
struct Moved {
    cents: i64,
}

fn in_euro(mut opened: Value) -> Value {
    opened["currency"] = json!("EUR");
    opened
}

fn taken_and_put(Moved { cents }: Moved) -> [New; 2] {
    [New::Taken(cents), New::Put(cents)]
}

/// As [`New`], with nothing said of what is gone.
#[derive(Event, Serialize, Deserialize)]
#[event(prefix = "sheet.")]
enum Strict {
    Begun { number: u64 },
}

#[derive(Command, Serialize, Deserialize)]
#[command(name = "begin", id = sheet)]
struct Begin {
    sheet: String,
}

/// Lets things happen, and answers what had happened before.
#[derive(Command, Serialize, Deserialize)]
#[command(name = "go-on", id = sheet, output = Vec<New>)]
struct GoOn {
    sheet: String,
    events: Vec<New>,
}

#[derive(Clone, Default)]
struct OldSheet;

impl Aggregate for OldSheet {
    const NAME: &str = "sheet";
    type Event = Old;
    fn apply(&mut self, _: &Old) {}
}

impl Decider<Begin> for OldSheet {
    fn decide(&self, _: &Begin) -> Result<Decision<Old>, Infallible> {
        let moved = Old::Moved { cents: 5 };
        Ok(Decision::events([Old::Begun { number: BIG }, Old::Pinged, moved]))
    }
}

#[derive(Clone, Default)]
struct NewSheet(Vec<New>);

impl Aggregate for NewSheet {
    const NAME: &str = "sheet";
    type Event = New;
    fn apply(&mut self, event: &New) {
        self.0.push(event.clone());
    }
}

impl Decider<GoOn> for NewSheet {
    fn decide(&self, ask: &GoOn) -> Result<Decision<New, Vec<New>>, Infallible> {
        Ok(Decision::events(ask.events.clone()).output(self.0.clone()))
    }
}

#[derive(Clone, Default)]
struct StrictSheet;

impl Aggregate for StrictSheet {
    const NAME: &str = "sheet";
    type Event = Strict;
    fn apply(&mut self, _: &Strict) {}
}

impl Decider<GoOn> for StrictSheet {
    fn decide(&self, _: &GoOn) -> Result<Decision<Strict, Vec<New>>, Infallible> {
        Ok(Decision::nothing().output(Vec::new()))
    }
}

const BIG: u64 = (1 << 53) + 1;

fn go_on(sheet: &str, events: &[New]) -> GoOn {
    GoOn { sheet: sheet.to_owned(), events: events.to_vec() }
}

async fn begin<H: Home>(store: &Watched<H>) {
    let old = CommandService::builder(store.clone()).decider::<OldSheet, Begin>().build().unwrap();
    old.execute(Begin { sheet: "a".into() }, keyed("begin")).await.unwrap();
}

/// What the events of [`Begin`] are today.
fn begun() -> [New; 3] {
    [New::Opened { number: BIG, currency: "EUR".into() }, New::Taken(5), New::Put(5)]
}

async fn a_stream_of_old_events_goes_on_as_one_that_was_written_new<H: Home>(store: Watched<H>) {
    begin(&store).await;
    let new = CommandService::builder(store.clone()).decider::<NewSheet, GoOn>().build().unwrap();
    let went_on = new.execute(go_on("a", &[New::Put(1)]), meta()).await.unwrap();
    assert_eq!(went_on.output.unwrap(), begun());
    assert_eq!(went_on.streams[0].version, Version::new(4), "versions count what is stored");

    new.execute(go_on("b", &begun()), meta()).await.unwrap();
    new.execute(go_on("b", &[New::Put(1)]), meta()).await.unwrap();
    // A service of its own: nothing is cached.
    let fresh = CommandService::builder(store).decider::<NewSheet, GoOn>().build().unwrap();
    let written_old = fresh.execute(go_on("a", &[]), meta()).await.unwrap().output.unwrap();
    let written_new = fresh.execute(go_on("b", &[]), meta()).await.unwrap().output.unwrap();
    assert_eq!(written_old, written_new);
}

async fn an_unknown_event_of_a_stream_is_refused_unless_it_is_skipped<H: Home>(store: Watched<H>) {
    begin(&store).await;
    let strict =
        CommandService::builder(store.clone()).decider::<StrictSheet, GoOn>().build().unwrap();
    let refused = strict.execute(go_on("a", &[]), meta()).await.unwrap_err();
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused:?}");
    let new = CommandService::builder(store).decider::<NewSheet, GoOn>().build().unwrap();
    new.execute(go_on("a", &[]), meta()).await.unwrap();
}

/// Sums what was put.
struct Puts<H>(PhantomData<fn() -> H>);

#[async_trait]
impl<H: Home> Projection<<H as Transact>::Connection> for Puts<H> {
    fn name(&self) -> &str {
        "puts"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut H::Connection,
    ) -> Result<(), ProjectionError> {
        let events: Vec<New> = event.decode_all()?.collect();
        for event in events {
            if let New::Put(cents) = event {
                H::add(connection, tenant(1), cents).await?;
            }
        }
        Ok(())
    }
}

async fn a_projection_takes_in_what_an_event_is_read_as<H: Home>(store: Watched<H>) {
    let old = CommandService::builder(store.clone()).decider::<OldSheet, Begin>();
    let old = old.projection(Puts::<H>(PhantomData)).build().unwrap();
    old.execute(Begin { sheet: "a".into() }, meta()).await.unwrap();
    assert_eq!(store.inner.sum(tenant(1)).await, 5);
}

/// A hand-written event whose chain has a gap.
struct Gapped;

impl Event for Gapped {
    const NAMES: &'static [EventName] = &[EventName { name: "gapped", schema_version: 3 }];
    const EVOLUTION: Evolution<Self> = Evolution::NONE.steps(&[Step {
        name: "gapped",
        from: 2,
        raise: |payload| raise(payload, |value: Value| value),
    }]);
    fn name(&self) -> EventName {
        Self::NAMES[0]
    }
    fn encode(&self) -> Result<Json, Invalid> {
        Json::of(&())
    }
    fn decode(_: EventName, _: &str) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

#[derive(Clone, Default)]
struct GappedSheet;

impl Aggregate for GappedSheet {
    const NAME: &str = "gapped-sheet";
    type Event = Gapped;
    fn apply(&mut self, _: &Gapped) {}
}

impl Decider<Begin> for GappedSheet {
    fn decide(&self, _: &Begin) -> Result<Decision<Gapped>, Infallible> {
        Ok(Decision::nothing())
    }
}

#[test]
fn a_chain_with_a_gap_is_refused_by_the_builder() {
    let builder = CommandService::builder(sequor::memory::MemoryStore::new());
    let error = builder.decider::<GappedSheet, Begin>().build().unwrap_err();
    let reason = EvolutionError::Gap { name: "gapped", version: 1 };
    assert_eq!(error, BuildError::Evolution { aggregate: "gapped-sheet", reason });
    let said = "aggregate `gapped-sheet`: no step leads event `gapped` on from schema 1: add it \
                to the chain";
    assert_eq!(error.to_string(), said);
}
