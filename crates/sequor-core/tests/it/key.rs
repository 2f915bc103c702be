//! Keys, tenants, names and times: parsed once, at the door.

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use sequor_core::{Actor, AggregateId, IdempotencyKey, Invalid, Name, TenantId, Timestamp};
use uuid::Uuid;

fn reason(key: &str) -> &'static str {
    let refused = IdempotencyKey::parse(key);
    let Err(Invalid::Key { reason }) = refused else { panic!("{refused:?}") };
    reason
}

#[test]
fn a_key_is_refused_for_what_is_wrong_with_it() {
    assert_eq!(reason(""), "is empty");
    assert_eq!(reason(" "), "holds a space");
    assert_eq!(reason("k "), "holds a space");
    assert_eq!(reason("\t"), "holds a control character");
    assert_eq!(reason("a\0b"), "holds a control character");
    assert_eq!(reason("\u{7f}"), "holds a control character");
    assert_eq!(reason("é"), "holds a character outside ASCII");
    assert_eq!(reason(&"k".repeat(256)), "is longer than 255 bytes");
    for length in [2_640, 2_700, 10_000, 20_000] {
        assert_eq!(reason(&"a".repeat(length)), "is longer than 255 bytes");
    }
}

#[test]
fn a_key_keeps_every_byte() {
    let visible: String = ('!'..='~').collect();
    assert_eq!(IdempotencyKey::parse(&visible).unwrap().as_str(), visible);
    assert_eq!(IdempotencyKey::parse(&"k".repeat(255)).unwrap().as_str().len(), 255);
    assert_ne!(IdempotencyKey::parse("k"), IdempotencyKey::parse("K"));
    assert_ne!(IdempotencyKey::parse("\"k\""), IdempotencyKey::parse("k"));
}

proptest! {
    #[test]
    fn a_key_is_what_the_rule_says(text in any::<String>()) {
        let rule = (1..=255).contains(&text.len()) && text.bytes().all(|b| (33..=126).contains(&b));
        prop_assert_eq!(IdempotencyKey::parse(&text).is_ok(), rule);
    }

    #[test]
    fn ids_and_actors_refuse_control_characters_and_length(text in any::<String>()) {
        let rule = (1..=255).contains(&text.len()) && !text.chars().any(char::is_control);
        prop_assert_eq!(AggregateId::new(&text).is_ok(), rule);
        prop_assert_eq!(Actor::new(&text).is_ok(), rule);
    }

    #[test]
    fn a_time_is_cut_to_microseconds_once(nanos in 0_u32..1_000_000_000, second in 0_i64..4_000_000_000) {
        let exact: DateTime<Utc> = DateTime::from_timestamp(second, nanos).unwrap();
        let time = Timestamp::from(exact);
        prop_assert_eq!(time.as_micros(), second * 1_000_000 + i64::from(nanos / 1_000));
        prop_assert_eq!(Timestamp::from_micros(time.as_micros()), Ok(time));
    }
}

#[test]
fn a_nil_tenant_cannot_be_made() {
    assert_eq!(TenantId::new(Uuid::nil()), Err(Invalid::TenantNil));
    assert_eq!(Uuid::nil().to_string().parse::<TenantId>(), Err(Invalid::TenantNil));
    assert_eq!("north".parse::<TenantId>(), Err(Invalid::TenantMalformed));
    assert!(serde_json::from_value::<TenantId>(Uuid::nil().to_string().into()).is_err());
}

#[test]
fn a_name_is_visible_ascii() {
    assert!(Name::new("account.opened").is_ok());
    assert!(Name::new("").is_err() && Name::new("a b").is_err() && Name::new("ä").is_err());
    assert!(Name::new("n".repeat(128)).is_ok() && Name::new("n".repeat(129)).is_err());
}
