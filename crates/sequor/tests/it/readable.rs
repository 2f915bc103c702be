//! What is written can be read again, and what has been done is answered even if something beside
//! it cannot.

use std::convert::Infallible;

use sequor::{
    Aggregate, Command, CommandService, Decider, Decision, Error, Event, Invalid, StoreError,
    Version,
};
use serde::{Deserialize, Serialize};

use crate::bank::{bank, cents, deposit, keyed, meta, open, tenant};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    an_output_that_does_not_read_back_is_refused_while_nothing_is_written,
    an_event_that_does_not_read_back_is_refused_while_nothing_is_written,
    a_known_key_is_answered_though_its_stream_cannot_be_read_any_more,
    an_aggregate_that_the_store_has_set_back_is_loaded_anew,
);

/// A common slip: it is left out when it is empty, and then missed by the reader.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Slip {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<u8>,
}

#[derive(Command, Serialize, Deserialize)]
#[command(name = "slip", id = id, output = Slip)]
struct Ask {
    id: u8,
    output: Vec<u8>,
    event: Vec<u8>,
}

#[derive(Event, Serialize, Deserialize)]
#[event(name = "slipped")]
struct Slipped(Slip);

/// The same event after its shape has changed.
#[derive(Event, Serialize, Deserialize)]
#[event(name = "slipped", version = 2)]
struct SlippedAnew(Slip);

#[derive(Clone, Default)]
struct Sheet;

impl Aggregate for Sheet {
    const NAME: &str = "sheet";
    type Event = Slipped;
    fn apply(&mut self, _: &Slipped) {}
}

impl Decider<Ask> for Sheet {
    fn decide(&self, ask: &Ask) -> Result<Decision<Slipped, Slip>, Infallible> {
        let slip = |lines: &[u8]| Slip { lines: lines.to_vec() };
        Ok(Decision::event(Slipped(slip(&ask.event))).output(slip(&ask.output)))
    }
}

#[derive(Clone, Default)]
struct SheetAnew;

impl Aggregate for SheetAnew {
    const NAME: &str = "sheet";
    type Event = SlippedAnew;
    fn apply(&mut self, _: &SlippedAnew) {}
}

impl Decider<Ask> for SheetAnew {
    fn decide(&self, ask: &Ask) -> Result<Decision<SlippedAnew, Slip>, Infallible> {
        let slip = Slip { lines: ask.output.clone() };
        Ok(Decision::event(SlippedAnew(slip.clone())).output(slip))
    }
}

fn ask(output: &[u8], event: &[u8]) -> Ask {
    Ask { id: 1, output: output.to_vec(), event: event.to_vec() }
}

async fn is_refused<H: Home>(store: Watched<H>, ask: Ask, what: &'static str) {
    let service = CommandService::builder(store).decider::<Sheet, Ask>().build().unwrap();
    let refused = service.execute(ask, keyed("k")).await.unwrap_err();
    let named =
        matches!(&refused, Error::Invalid(Invalid::NotReadable { what: of, .. }) if *of == what);
    assert!(named, "{refused:?}");
    assert!(service.outcome(tenant(1), &"k".parse().unwrap()).await.unwrap().is_none());
    let sound = service.execute(self::ask(&[1], &[1]), keyed("k")).await.unwrap();
    assert_eq!(sound.streams[0].version, Version::new(1));
}

async fn an_output_that_does_not_read_back_is_refused_while_nothing_is_written<H: Home>(
    store: Watched<H>,
) {
    is_refused(store, ask(&[], &[1]), "output").await;
}

async fn an_event_that_does_not_read_back_is_refused_while_nothing_is_written<H: Home>(
    store: Watched<H>,
) {
    is_refused(store, ask(&[1], &[]), "event").await;
}

async fn a_known_key_is_answered_though_its_stream_cannot_be_read_any_more<H: Home>(
    store: Watched<H>,
) {
    let before = CommandService::builder(store.clone()).decider::<Sheet, Ask>().build().unwrap();
    let first = before.execute(ask(&[1], &[1]), keyed("k")).await.unwrap();
    let after = CommandService::builder(store).decider::<SheetAnew, Ask>().build().unwrap();
    let again = after.execute(ask(&[1], &[1]), keyed("k")).await.unwrap();
    assert!(again.is_replayed());
    assert_eq!(again.command_id, first.command_id);
    let fresh = after.execute(ask(&[1], &[1]), keyed("fresh")).await.unwrap_err();
    assert!(matches!(fresh, Error::Corrupt { .. }), "{fresh:?}");
}

async fn an_aggregate_that_the_store_has_set_back_is_loaded_anew<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let deposited = bank.execute(deposit("a", 1), meta()).await.unwrap();
    let stream = deposited.streams[0].stream.clone();
    let (expected, actual) = (Version::new(2), Version::new(1));
    store.watch.fail(Door::Commit, [StoreError::Conflict { stream, expected, actual }]);
    let before = store.watch.calls(Door::History);
    bank.execute(deposit("a", 1), meta()).await.unwrap();
    assert_eq!(store.watch.calls(Door::History) - before, 1, "the cached state is not trusted");
    assert_eq!(cents(&bank, "a").await, 2);
}
