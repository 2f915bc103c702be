//! Events: names, versions, and a way there and back for each kind of variant.

use sequor_core::names::is_name;
use sequor_core::{DecodeError, Event, EventName};
use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
enum AccountEvent {
    Closed,
    OwnerChanged(String),
    #[event(version = 2)]
    Moved(i64, Option<String>),
    #[event(name = "deposited", version = 7)]
    MoneyDeposited {
        cents: u64,
        #[serde(rename = "noteText")]
        note: Option<String>,
    },
    Shared(Note),
    r#Fn {
        r#type: u8,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Note {
    Blank,
    Text(String),
}

fn one_of_each() -> Vec<AccountEvent> {
    vec![
        AccountEvent::Closed,
        AccountEvent::OwnerChanged("Ada".into()),
        AccountEvent::Moved(-1, None),
        AccountEvent::MoneyDeposited { cents: u64::MAX, note: Some("\u{1F980} \"quoted\"".into()) },
        AccountEvent::Shared(Note::Text("x".into())),
        AccountEvent::Shared(Note::Blank),
        AccountEvent::Fn { r#type: 3 },
    ]
}

fn check_return<E: Event + PartialEq + std::fmt::Debug>(event: &E) -> String {
    let payload = event.encode().expect("has JSON");
    let back = E::decode(event.name(), payload.as_str()).expect("can be read");
    assert_eq!(&back, event);
    payload.to_string()
}

#[test]
fn every_kind_of_variant_returns_from_its_payload() {
    let payloads: Vec<_> = one_of_each().iter().map(check_return).collect();
    let expected = [
        "null",
        r#""Ada""#,
        "[-1,null]",
        r#"{"cents":18446744073709551615,"noteText":"🦀 \"quoted\""}"#,
        r#"{"Text":"x"}"#,
        r#""Blank""#,
        r#"{"type":3}"#,
    ];
    assert_eq!(payloads, expected);
}

#[test]
fn names_are_prefix_and_snake_case_unless_given() {
    let names: Vec<_> = AccountEvent::NAMES.iter().map(|name| name.name).collect();
    let expected = [
        "account.closed",
        "account.owner_changed",
        "account.moved",
        "deposited",
        "account.shared",
        "account.fn",
    ];
    assert_eq!(names, expected);
}

#[test]
fn versions_are_1_unless_given() {
    let versions = AccountEvent::NAMES.iter().map(|name| name.schema_version);
    assert_eq!(versions.collect::<Vec<_>>(), [1, 1, 2, 7, 1, 1]);
}

#[test]
fn each_event_carries_one_of_its_type_s_names() {
    for event in one_of_each() {
        assert!(AccountEvent::NAMES.contains(&event.name()), "{event:?}");
    }
}

#[test]
fn an_unknown_name_is_refused_as_unknown() {
    let name = EventName { name: "account.burnt", schema_version: 1 };
    let refused = AccountEvent::decode(name, "null");
    assert!(matches!(refused, Err(DecodeError::UnknownName { .. })));
    assert!(matches!(Audited::decode(name, "{}"), Err(DecodeError::UnknownName { .. })));
}

#[test]
fn another_shape_is_refused_with_the_event_s_name_and_a_reason() {
    let refused = AccountEvent::decode(AccountEvent::NAMES[3], r#"{"note":null}"#);
    let Err(DecodeError::Malformed { name, reason }) = refused else { panic!("{refused:?}") };
    assert_eq!(name, "deposited");
    assert!(reason.starts_with("missing field `cents`"), "{reason}");
}

#[test]
fn a_payload_cannot_smuggle_in_another_variant() {
    let closed = AccountEvent::NAMES[0];
    for payload in [r#"null,"OwnerChanged":"x""#, r#"null},{"Closed":null"#, ""] {
        assert!(AccountEvent::decode(closed, payload).is_err(), "{payload}");
    }
}

#[derive(Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(crate = "sequor_core", version = 3)]
#[serde(rename_all = "camelCase")]
struct Audited {
    by_whom: String,
}

#[derive(Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(crate = sequor_core, name = "wholly-other", prefix = "ignored.")]
struct Counted(u32);

#[derive(Debug, PartialEq, Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "bell.")]
struct HasRung;

#[test]
fn a_struct_is_one_event() {
    let audited = Audited { by_whom: "me".into() };
    assert_eq!(check_return(&audited), r#"{"byWhom":"me"}"#);
    assert_eq!(check_return(&Counted(4)), "4");
    assert_eq!(check_return(&HasRung), "null");

    assert_eq!(audited.name().name, "audited");
    assert_eq!(audited.name().schema_version, 3);
    assert_eq!(Counted(4).name().name, "wholly-other");
    assert_eq!(HasRung::NAMES[0].name, "bell.has_rung");
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum Longest {
    #[event(
        name = "a-name-of-128-bytes-------------------------------------------------------------------------------------------------------------"
    )]
    One,
}

/// `tests/ui/event_name_is_no_name.rs` has the first name that is too long.
#[test]
fn the_longest_name_of_the_derive_is_that_of_the_core() {
    let name = Longest::One.name().name;
    assert!(is_name(name));
    assert!(!is_name(&format!("{name}+")));
}
