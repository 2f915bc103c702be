//! Canonical JSON: one text for one value, and nothing that would not survive.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use sequor_core::{Fingerprint, Invalid, Json};
use serde::Serialize;
use serde_json::{Value, json};

fn text(value: &impl Serialize) -> String {
    Json::of(value).unwrap().as_str().to_owned()
}

fn is_refused(value: &impl Serialize) -> bool {
    matches!(Json::of(value), Err(Invalid::Json { .. }))
}

#[derive(Serialize)]
enum Kind {
    Unit,
    Newtype(u8),
    Tuple(u8, u8),
    Struct { b: u8, a: u8 },
}

#[test]
fn members_are_sorted_and_arrays_keep_their_order() {
    assert_eq!(
        text(&json!({"b": [2, 1], "a": {"d": null, "c": true}})),
        r#"{"a":{"c":true,"d":null},"b":[2,1]}"#
    );
    let map: HashMap<String, u8> = (0..50).map(|n| (format!("k{n:02}"), n)).collect();
    let sorted: BTreeMap<_, _> = map.clone().into_iter().collect();
    assert_eq!(text(&map), text(&sorted));
}

#[test]
fn variants_are_tagged_unless_their_name_stands_elsewhere() {
    let all = [Kind::Unit, Kind::Newtype(1), Kind::Tuple(1, 2), Kind::Struct { b: 1, a: 2 }];
    let tagged =
        [r#""Unit""#, r#"{"Newtype":1}"#, r#"{"Tuple":[1,2]}"#, r#"{"Struct":{"a":2,"b":1}}"#];
    let bare = ["null", "1", "[1,2]", r#"{"a":2,"b":1}"#];
    for ((value, tagged), bare) in all.iter().zip(tagged).zip(bare) {
        assert_eq!(text(value), tagged);
        assert_eq!(Json::of_variant(value).unwrap().as_str(), bare);
    }
    // Only the outermost tag is left out.
    assert_eq!(Json::of_variant(&Some(Kind::Newtype(1))).unwrap().as_str(), "1");
    assert_eq!(text(&vec![Kind::Newtype(1)]), r#"[{"Newtype":1}]"#);
}

#[test]
fn integers_are_exact_to_64_bits_and_refused_beyond() {
    for exact in ["-9223372036854775808", "9007199254740993", "18446744073709551615"] {
        assert_eq!(Json::parse(exact).unwrap().as_str(), exact);
    }
    assert_eq!(text(&i128::from(u64::MAX)), "18446744073709551615");
    assert!(is_refused(&(i128::from(u64::MAX) + 1)) && is_refused(&(i128::from(i64::MIN) - 1)));
    assert!(is_refused(&u128::MAX));
}

#[test]
fn what_json_cannot_say_is_refused() {
    assert!(is_refused(&f64::NAN) && is_refused(&f64::INFINITY) && is_refused(&f32::NEG_INFINITY));
    assert!(is_refused(&Some(f64::NAN)), "an optional NaN must not turn into null");
    assert!(is_refused(&BTreeMap::from([((1, 2), 3)])), "a key that is no text");
    assert!(is_refused(&BTreeMap::from([(None::<u8>, 3)])));
}

#[test]
fn nul_is_refused_wherever_it_stands_and_its_spelling_is_not() {
    assert!(is_refused(&"a\0b") && is_refused(&'\0') && is_refused(&json!({"a\0": 1})));
    assert!(Json::parse(r#"{"a":"\u0000"}"#).is_err());
    let honest = r"\u0000";
    assert_eq!(Json::of(honest).unwrap().read::<String>().unwrap(), honest);
}

#[test]
fn a_lone_surrogate_is_no_json() {
    assert!(Json::parse(r#""\ud800""#).is_err());
    assert!(Json::parse(r#""\udc00\ud800""#).is_err());
    assert_eq!(Json::parse(r#""\ud83d\ude00""#).unwrap().as_str(), "\"😀\"");
}

#[test]
fn deep_values_are_refused_before_a_reader_would_refuse_them() {
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let written = Json::of(&nested(100)).unwrap();
    written.read::<Value>().unwrap();
    assert!(is_refused(&nested(101)));
}

#[test]
fn a_text_that_is_json_already_becomes_canonical_too() {
    let raw = serde_json::value::RawValue::from_string(r#"{"b":1, "a":2}"#.to_owned()).unwrap();
    assert_eq!(text(&raw), r#"{"a":2,"b":1}"#);
    assert_eq!(text(&json!({"x": Json::of(&1).unwrap()})), r#"{"x":1}"#);
}

#[test]
fn numbers_as_keys_become_text() {
    assert_eq!(text(&BTreeMap::from([(10, 1), (9, 2)])), r#"{"10":1,"9":2}"#);
    assert_eq!(text(&BTreeMap::from([(true, 1)])), r#"{"true":1}"#);
}

#[test]
fn the_same_request_has_the_same_fingerprint() {
    let of = |json: &str| Fingerprint::of("charge", &Json::parse(json).unwrap());
    assert_eq!(of(r#"{"a":1,"b":{"c":2,"d":3}}"#), of(r#"{ "b":{"d":3,"c":2},"a":1 }"#));
    assert_ne!(of("[1,2]"), of("[2,1]"));
    assert_ne!(of(r#"{"a":null}"#), of("{}"));
    assert_ne!(of("1"), of("1.0"), "a count and a measure are different types");
    assert_eq!(format!("{:?}", of("{}")), "Fingerprint(01c36e327d…)", "the rule never changes");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        "[^\u{0}]*".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map("[^\u{0}]*", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_written_reads_back_as_it_was(value in any_json()) {
        let json = Json::of(&value).unwrap();
        prop_assert_eq!(&json.read::<Value>().unwrap(), &value);
        let again = Json::parse(json.as_str()).unwrap();
        prop_assert_eq!(again.as_str(), json.as_str(), "the canonical form is its own");
    }

    #[test]
    fn the_order_of_members_never_shows(pairs in prop::collection::hash_map("[^\u{0}]*", any::<i32>(), 0..20)) {
        let mut forward: Vec<_> = pairs.into_iter().collect();
        forward.sort();
        let written = |pairs: &[(String, i32)]| {
            let body: Vec<_> = pairs.iter().map(|(k, v)| format!("{}:{v}", json!(k))).collect();
            Json::parse(&format!("{{{}}}", body.join(" , "))).unwrap()
        };
        let backward: Vec<_> = forward.iter().rev().cloned().collect();
        prop_assert_eq!(written(&forward), written(&backward));
    }

    #[test]
    fn every_double_survives(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        prop_assert_eq!(Json::of(&number).unwrap().read::<f64>().unwrap().to_bits(), bits);
    }
}
