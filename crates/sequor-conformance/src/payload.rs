//! Data that comes back as it went in.

use sequor_core::Json;

use crate::harness::Harness;
use crate::sample::{DEPOSITED, EMAIL, account, command, json, tenant};
use crate::world::{World, assert_taken};

/// Texts that mean something to somebody, but not to a store.
const HOSTILE: [&str; 24] = [
    "'; DROP TABLE events; --",
    "x' OR '1'='1",
    "\"quoted\"",
    "back\\slash",
    "100%",
    "under_score",
    "a*b?c[d]",
    "{\"a\":1}",
    "[1,2]",
    "null",
    "true",
    "1",
    "01",
    "1e3",
    "0x1F",
    "$1",
    "?1",
    ":name",
    "@p",
    "a,b",
    "a/b",
    " leading and trailing ",
    "\u{202e}שלום\u{2069}",
    "👩‍👩‍👧‍👦e\u{301}",
];

/// Asserts that an event, an output and the replay keep a value.
async fn assert_kept<H: Harness>(world: &World<H>, id: &str, value: &Json) {
    let t = tenant(1);
    let sample = command(t).key(id).asking(value).giving(value);
    let commit = sample.on(id, 0).event_with(DEPOSITED, value).build();
    let first = world.fresh(commit.clone()).await;
    let replay = world.known(commit).await;
    let stored = world.record(t, id).await.unwrap();
    let events = world.events(&account(t, id)).await;
    let log = world.log(t).await;
    let logged = log.iter().find(|event| event.stream.id.as_str() == id).unwrap();
    let kept = [&first.output, &replay.output, &stored.output, &events[0].payload, &logged.payload];
    for kept in kept {
        assert!(kept == value, "{id} has changed");
    }
}

/// No integer goes through a double.
pub(crate) async fn payload_keeps_integers_exact<H: Harness>(world: World<H>) {
    let numbers = format!("[{},{},{},{},0,-1]", i64::MIN, i64::MAX, u64::MAX, (1_u64 << 53) + 1);
    assert_kept(&world, "integers", &json(&numbers)).await;
    for (n, number) in [i64::MIN.to_string(), u64::MAX.to_string()].iter().enumerate() {
        assert_kept(&world, &format!("integer-{n}"), &json(number)).await;
    }
}

/// Fractions come back as the same double.
pub(crate) async fn payload_keeps_fractions<H: Harness>(world: World<H>) {
    let value = Json::of(&[0.1, -0.5, 1e300, 5e-324, f64::MAX, 0.1 + 0.2]).unwrap();
    assert_kept(&world, "fractions", &value).await;
}

/// The six characters backslash, u, 0, 0, 0, 0 are text like another.
pub(crate) async fn payload_keeps_an_escaped_nul_that_is_text<H: Harness>(world: World<H>) {
    let text = r"honest \u0000 text, and \ud800 too";
    assert_kept(&world, "value", &Json::of(text).unwrap()).await;
    let object = std::collections::BTreeMap::from([(text, text)]);
    assert_kept(&world, "object-key", &Json::of(&object).unwrap()).await;
}

/// Every script, direction, emoji, combining and control character that JSON can hold.
pub(crate) async fn payload_keeps_text_of_every_script<H: Harness>(world: World<H>) {
    for (n, text) in HOSTILE.into_iter().enumerate() {
        assert_kept(&world, &format!("text-{n}"), &Json::of(text).unwrap()).await;
    }
    let controls: String = ('\u{1}'..='\u{9f}').collect();
    assert_kept(&world, "controls", &Json::of(&controls).unwrap()).await;
    let edges = "\u{feff}\u{fffd}\u{ffff}\u{10ffff}\u{2028}\u{e000}é e\u{301} ß SS";
    assert_kept(&world, "edges", &Json::of(edges).unwrap()).await;
}

/// A payload as long as the default limit allows.
pub(crate) async fn payload_of_one_mebibyte_is_kept<H: Harness>(world: World<H>) {
    let text = "0123456789abcdeé".repeat((1 << 20) / 17);
    let value = Json::of(&text[..(text.len() - 4)]).unwrap();
    assert!((1_000_000..=1 << 20).contains(&value.as_str().len()));
    assert_kept(&world, "long", &value).await;
}

/// Nothing, in all its forms.
pub(crate) async fn payload_of_nothing_is_kept<H: Harness>(world: World<H>) {
    for (n, empty) in ["{}", "[]", "\"\"", "null", "0", "false"].into_iter().enumerate() {
        assert_kept(&world, &format!("empty-{n}"), &json(empty)).await;
    }
}

/// Nested as deep as people do.
pub(crate) async fn payload_nested_ninety_deep_is_kept<H: Harness>(world: World<H>) {
    let nested = format!("{}1{}", r#"{"a":["#.repeat(45), "]}".repeat(45));
    assert_kept(&world, "nested", &json(&nested)).await;
}

/// Members that look alike are not one.
pub(crate) async fn payload_tells_close_members_apart<H: Harness>(world: World<H>) {
    let value = json(r#"{"a":1,"A":2,"a ":3,"":4,"é":5,"e\u0301":6,"1":7,"01":8}"#);
    assert_eq!(value.read::<std::collections::HashMap<String, u8>>().unwrap().len(), 8);
    assert_kept(&world, "members", &value).await;
}

/// Ids of aggregates are text and nothing else.
pub(crate) async fn payload_keeps_hostile_aggregate_ids<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let long = ["é".repeat(127), "a".repeat(255), format!("{}b", "a".repeat(254))];
    let alike = ["a", "A", "a ", " a", "é", "e\u{301}"].map(str::to_owned);
    let hostile = HOSTILE.map(str::to_owned);
    let ids: Vec<String> = hostile.into_iter().chain(long).chain(alike).collect();
    for (n, id) in ids.iter().enumerate() {
        world.fresh(command(t).on(id, 0).events(n + 1).build()).await;
    }
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(world.events(&account(t, id)).await.len(), n + 1, "{id}");
    }
}

/// Unique values are text and nothing else.
pub(crate) async fn payload_keeps_hostile_unique_values<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let long = "é".repeat(127);
    for (n, value) in HOSTILE.into_iter().chain([long.as_str()]).enumerate() {
        let id = format!("a{n}");
        world.fresh(command(t).on(&id, 0).event().hold(EMAIL, value).build()).await;
        let clash = command(t).on("b", 0).event().hold(EMAIL, value).build();
        assert_taken(&world.refused(clash).await, &account(t, &id), EMAIL, value);
    }
}

/// Actors are text and nothing else.
pub(crate) async fn payload_keeps_hostile_actors<H: Harness>(world: World<H>) {
    let t = tenant(1);
    for (n, actor) in HOSTILE.into_iter().enumerate() {
        let (key, id) = (format!("k{n}"), format!("a{n}"));
        let record =
            world.fresh(command(t).key(&key).actor(actor).on(&id, 0).event().build()).await;
        assert_eq!(record.actor.as_ref().unwrap().as_str(), actor);
        assert_eq!(world.record(t, &key).await, Some(record));
        let events = world.events(&account(t, &id)).await;
        assert_eq!(events[0].meta.actor.as_ref().unwrap().as_str(), actor);
    }
}

/// Names of commands are text and nothing else.
pub(crate) async fn payload_keeps_hostile_names<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let all: String = ('!'..='~').collect();
    let names = ["';DROP--".to_owned(), "%_\"\\".to_owned(), "n".repeat(128), all];
    for (n, name) in names.into_iter().enumerate() {
        let key = format!("k{n}");
        let record = world.fresh(command(t).key(&key).named(name.clone()).build()).await;
        assert_eq!(record.command_name.as_str(), name);
        assert_eq!(world.record(t, &key).await, Some(record));
    }
}
