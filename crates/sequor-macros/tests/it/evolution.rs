//! Older events are read as today's.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests panic as tests do")]

use sequor_core::event::{Evolution, EvolutionError, Rename, Split, Step, raise};
use sequor_core::{
    Aggregate, AggregateId, CommandId, CommandMeta, CorrelationId, DecodeError, Event, EventName,
    Json, Name, Position, StoredEvent, StreamId, TenantId, Timestamp, Version, fold,
};
use sequor_macros::Event;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Version 1 had an owner, version 2 a currency too; version 3 calls the owner by two names.
#[derive(Clone, Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
#[event(split("account.moved", 1 = taken_and_put, 2 = |moved: Moved| Some(Put::of(moved))))]
#[event(split("account.put", 1 = |cents: i64| (cents != 0).then_some(AccountEvent::Put { cents })))]
#[event(skip("account.pinged", "crm.*"))]
enum AccountEvent {
    #[event(version = 3, upcast(1 = in_euro, 2 = with_two_names), was = "account.created")]
    Opened {
        first: String,
        last: String,
        currency: String,
        number: u64,
    },
    Taken {
        cents: i64,
    },
    #[event(version = 2)]
    Put {
        cents: i64,
    },
}

#[derive(Serialize, Deserialize)]
struct Opened2 {
    owner: String,
    currency: String,
    number: u64,
}

#[derive(Serialize, Deserialize)]
struct Opened3 {
    first: String,
    last: String,
    currency: String,
    number: u64,
}

#[derive(Deserialize)]
struct Moved {
    cents: i64,
}

struct Put;

impl Put {
    fn of(moved: Moved) -> AccountEvent {
        AccountEvent::Put { cents: moved.cents }
    }
}

fn in_euro(mut opened: Value) -> Value {
    opened["currency"] = json!("EUR");
    opened
}

fn with_two_names(opened: Opened2) -> Opened3 {
    let Opened2 { owner, currency, number } = opened;
    let (first, last) = owner.split_once(' ').unwrap_or(("", &owner));
    Opened3 { first: first.to_owned(), last: last.to_owned(), currency, number }
}

fn taken_and_put(moved: Moved) -> [AccountEvent; 2] {
    let cents = moved.cents;
    [AccountEvent::Taken { cents }, AccountEvent::Put { cents: cents + 1 }]
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Account(Vec<AccountEvent>);

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = AccountEvent;
    fn apply(&mut self, event: &AccountEvent) {
        self.0.push(event.clone());
    }
}

const BIG: u64 = (1 << 53) + 1;

fn stored(name: &'static str, schema_version: u32, payload: &Value) -> StoredEvent {
    let id: Uuid = "018f2f6e-0000-7000-8000-000000000001".parse().unwrap();
    let tenant = TenantId::try_from(id).unwrap();
    let aggregate = Name::new("account").unwrap();
    StoredEvent {
        position: Position::START,
        stream: StreamId { tenant, aggregate, id: AggregateId::new("a").unwrap() },
        version: Version::NONE,
        name: Name::new(name).unwrap(),
        schema_version,
        payload: Json::of(payload).unwrap(),
        meta: CommandMeta {
            command_id: CommandId(id),
            tenant,
            key: None,
            actor: None,
            correlation_id: CorrelationId(id),
            causation_id: None,
            time: Timestamp::from_micros(0).unwrap(),
        },
    }
}

fn read(name: &'static str, version: u32, payload: &Value) -> Vec<AccountEvent> {
    stored(name, version, payload).decode_all().unwrap().collect()
}

fn refused(name: &'static str, version: u32) -> DecodeError {
    stored(name, version, &json!({})).decode::<AccountEvent>().unwrap_err()
}

fn opened(currency: &str) -> AccountEvent {
    let (first, last) = ("Ada".to_owned(), "Byron".to_owned());
    AccountEvent::Opened { first, last, currency: currency.to_owned(), number: BIG }
}

#[test]
fn a_typed_step_makes_a_new_struct_of_an_old_one() {
    let payload = json!({"owner": "Ada Byron", "currency": "GBP", "number": BIG});
    assert_eq!(read("account.opened", 2, &payload), [opened("GBP")]);
}

#[test]
fn steps_are_chained_from_json_to_typed_and_integers_stay_exact() {
    let payload = json!({"owner": "Ada Byron", "number": BIG});
    assert_eq!(read("account.opened", 1, &payload), [opened("EUR")]);
}

#[test]
fn a_renamed_event_is_read_under_its_new_name_from_its_version_on() {
    let payload = json!({"owner": "Ada Byron", "number": BIG});
    assert_eq!(read("account.created", 1, &payload), [opened("EUR")]);
    let payload = json!({"owner": "Ada Byron", "currency": "GBP", "number": BIG});
    assert_eq!(read("account.created", 2, &payload), [opened("GBP")]);
}

#[test]
fn one_stored_event_is_read_as_several() {
    let expected = [AccountEvent::Taken { cents: 5 }, AccountEvent::Put { cents: 6 }];
    assert_eq!(read("account.moved", 1, &json!({"cents": 5})), expected);
    assert_eq!(
        stored("account.moved", 1, &json!({"cents": 5})).decode::<AccountEvent>(),
        Err(DecodeError::NotOne { name: Name::new("account.moved").unwrap(), count: 2 })
    );
    assert_eq!(read("account.moved", 2, &json!({"cents": 5})), [AccountEvent::Put { cents: 5 }]);
}

#[test]
fn an_older_version_of_an_event_may_be_read_as_none() {
    assert_eq!(read("account.put", 1, &json!(0)), []);
    assert_eq!(read("account.put", 1, &json!(7)), [AccountEvent::Put { cents: 7 }]);
}

#[test]
fn events_are_skipped_by_name_and_by_the_beginning_of_names() {
    assert_eq!(read("account.pinged", 9, &json!(null)), []);
    assert_eq!(read("crm.noted", 1, &json!({"text": "x"})), []);
    let none = stored("crm.noted", 1, &json!(1)).decode::<AccountEvent>();
    assert!(matches!(none, Err(DecodeError::NotOne { count: 0, .. })), "{none:?}");
}

#[test]
fn what_nothing_is_said_of_is_refused_as_unknown() {
    for name in ["account.pinged.twice", "crm", "account.burnt"] {
        assert!(matches!(refused(name, 1), DecodeError::UnknownName { .. }), "{name}");
    }
}

#[test]
fn a_version_of_the_future_is_refused_under_each_name() {
    for (name, known) in [("account.opened", 3), ("account.created", 3), ("account.moved", 2)] {
        let name_of = Name::new(name).unwrap();
        let expected = DecodeError::OtherSchema { name: name_of, stored: 4, known };
        assert_eq!(refused(name, 4), expected);
    }
}

#[test]
fn an_older_version_without_steps_is_refused() {
    #[derive(Debug, PartialEq, Event, Serialize, Deserialize)]
    #[event(crate = sequor_core, name = "counted", version = 2)]
    struct Counted;

    let refused = stored("counted", 1, &json!(null)).decode::<Counted>();
    assert!(matches!(refused, Err(DecodeError::OtherSchema { stored: 1, known: 2, .. })));
}

#[test]
fn a_payload_that_a_step_cannot_read_is_malformed() {
    let refused = refused("account.opened", 2);
    let DecodeError::Malformed { name, reason } = refused else { panic!("{refused:?}") };
    assert_eq!(name, "account.opened");
    assert!(reason.starts_with("missing field `owner`"), "{reason}");
}

#[test]
fn a_stream_of_old_and_new_events_folds_to_what_a_new_one_would() {
    let old = [
        stored("account.created", 1, &json!({"owner": "Ada Byron", "number": BIG})),
        stored("account.pinged", 1, &json!(null)),
        stored("account.moved", 1, &json!({"cents": 5})),
        stored("account.put", 2, &json!({"cents": 8})),
    ];
    let new = [
        opened("EUR"),
        AccountEvent::Taken { cents: 5 },
        AccountEvent::Put { cents: 6 },
        AccountEvent::Put { cents: 8 },
    ];
    let new: Vec<StoredEvent> = new.iter().map(written).collect();
    assert_eq!(fold(Account::default(), &old), fold(Account::default(), &new));
}

fn written(event: &AccountEvent) -> StoredEvent {
    let EventName { name, schema_version } = event.name();
    stored(name, schema_version, &event.encode().unwrap().read().unwrap())
}

#[test]
fn what_the_derive_writes_passes_its_check() {
    assert_eq!(AccountEvent::EVOLUTION.check(AccountEvent::NAMES), Ok(()));
}

const NAMES: &[EventName] = &[EventName { name: "paid", schema_version: 3 }];

const fn step(name: &'static str, from: u32) -> Step {
    Step { name, from, raise: |payload| raise(payload, |value: Value| value) }
}

const fn gone(name: &'static str, version: u32) -> Split<()> {
    Split { name, version, read: |_| Ok(Vec::new()) }
}

fn wrong(evolution: Evolution<()>) -> EvolutionError {
    evolution.check(NAMES).unwrap_err()
}

#[test]
fn a_chain_with_a_gap_is_found_by_the_check() {
    let wrong = |steps| wrong(Evolution::NONE.steps(steps));
    assert_eq!(
        wrong(&[const { step("paid", 2) }]),
        EvolutionError::Gap { name: "paid", version: 1 }
    );
    assert_eq!(
        wrong(&[const { step("paid", 1) }]),
        EvolutionError::Gap { name: "paid", version: 2 }
    );
    let leads_nowhere = EvolutionError::Gap { name: "owed", version: 2 };
    assert_eq!(wrong(&[const { step("owed", 1) }]), leads_nowhere);
}

#[test]
fn steps_from_one_version_and_beyond_today_s_are_found_by_the_check() {
    let twice = Evolution::NONE
        .steps(const { &[step("paid", 1), step("paid", 2)] })
        .splits(const { &[gone("paid", 2)] });
    assert_eq!(wrong(twice), EvolutionError::Fork { name: "paid", version: 2 });
    let beyond = Evolution::NONE.steps(const { &[step("paid", 3)] });
    assert_eq!(wrong(beyond), EvolutionError::OutOfRange { name: "paid", version: 3, end: 3 });
    let before = Evolution::NONE.splits(const { &[gone("owed", 0)] });
    assert_eq!(wrong(before), EvolutionError::OutOfRange { name: "owed", version: 0, end: 1 });
}

#[test]
fn names_in_circles_and_names_still_in_use_are_found_by_the_check() {
    let circle = const { &[Rename { was: "a", is: "b" }, Rename { was: "b", is: "a" }] };
    let nothing = EvolutionError::RenamedToNothing { was: "a", is: "b" };
    assert_eq!(wrong(Evolution::NONE.renames(circle)), nothing);
    let in_use = EvolutionError::StillInUse { name: "paid" };
    let itself = const { &[Rename { was: "paid", is: "paid" }] };
    assert_eq!(wrong(Evolution::NONE.renames(itself)), in_use);
    assert_eq!(wrong(Evolution::NONE.skips(&["paid"])), in_use);
}
