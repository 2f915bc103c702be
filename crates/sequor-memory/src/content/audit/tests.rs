//! Each map is damaged in turn, and what is found names the row.

use std::sync::Arc;

use sequor_core::audit::Finding;
use sequor_core::commit::{CommitDraft, StreamDraft};
use sequor_core::{
    AggregateId, CommandId, CommandMeta, CorrelationId, EventName, Fingerprint, Json, Limits, Name,
    Position, StoredEvent, StreamId, TenantId, Timestamp, UniqueChange, UniqueKey, Version,
};
use uuid::Uuid;

use super::Content;
use crate::content::Judged;

fn tenant() -> TenantId {
    TenantId::new(Uuid::from_u128(7)).unwrap()
}

fn stream(id: &str) -> StreamId {
    let (aggregate, id) = (Name::new("account").unwrap(), AggregateId::new(id).unwrap());
    StreamId { tenant: tenant(), aggregate, id }
}

fn email(value: &str) -> UniqueKey {
    UniqueKey::new(Name::new("email").unwrap(), value).unwrap()
}

fn command(number: u64) -> CommandId {
    CommandId(Uuid::from_u128(u128::from(number)))
}

/// Three commands under the keys `k1` to `k3`, each with an event of `a`, which holds a value.
fn content() -> Content {
    let mut content = Content::default();
    for number in 1..=3 {
        let Ok(Judged::Fresh(written)) = content.judge(deposit(number), &[]) else {
            panic!("a fresh commit");
        };
        content.apply(written);
    }
    content
}

fn deposit(number: u64) -> sequor_core::Commit {
    let payload = Json::of(&number).unwrap();
    let draft = CommitDraft {
        meta: CommandMeta {
            command_id: command(number),
            tenant: tenant(),
            key: Some(format!("k{number}").parse().unwrap()),
            actor: None,
            correlation_id: CorrelationId(Uuid::from_u128(u128::from(number))),
            causation_id: None,
            time: Timestamp::from_micros(1_700_000_000_000_000).unwrap(),
        },
        name: Name::new("account.deposit").unwrap(),
        fingerprint: Some(Fingerprint::of("account.deposit", &payload)),
        output: Json::of(&()).unwrap(),
        streams: vec![StreamDraft {
            stream: stream("a"),
            expected: Version::new(number - 1),
            after: None,
            unique: vec![UniqueChange::Hold(email("v"))],
        }],
        events: vec![(
            0,
            EventName { name: "account.deposited", schema_version: 1 },
            payload.clone(),
        )],
        payload,
    };
    draft.check(&Limits::DEFAULT).unwrap()
}

fn found(damage: impl FnOnce(&mut Content)) -> Vec<Finding> {
    let mut content = content();
    damage(&mut content);
    content.audit(100).findings().to_vec()
}

/// Changes the event at a place of the log, and the same in its stream.
fn change(content: &mut Content, at: usize, change: impl Fn(&mut StoredEvent)) {
    let mut event = (*content.log[at]).clone();
    change(&mut event);
    let event = Arc::new(event);
    content.log[at] = Arc::clone(&event);
    content.stream(&stream("a")).events[at] = event;
}

#[test]
fn a_store_that_has_done_what_it_promises_is_clean() {
    let report = content().audit(100);
    assert!(report.is_clean(), "{report}");
    let counts = report.counts;
    assert_eq!((counts.commands, counts.events, counts.streams), (3, 3, 1));
    assert_eq!((counts.keys, counts.unique_values), (3, 1));
    assert!(Content::default().audit(100).is_clean());
}

#[test]
fn damage_to_the_log_is_found() {
    let (one, two, three) = (Version::new(1), Version::new(2), Version::new(3));
    let behind = found(|content| content.drawn = 2);
    let (drawn, highest) = (Position::new(2), Position::new(3));
    assert_eq!(behind, [Finding::PositionsBehind { drawn, highest }]);

    let lost = found(|content| {
        content.log.pop();
    });
    let lost_version =
        Finding::StreamVersion { stream: stream("a"), stored: Some(three), last: Some(two) };
    assert!(lost.contains(&lost_version), "{lost:?}");

    let hole = found(|content| {
        content.stream(&stream("a")).events.remove(1);
    });
    assert_eq!(hole, [Finding::VersionsMissing { stream: stream("a"), from: two, to: two }]);

    let twice = found(|content| change(content, 1, |event| event.version = one));
    assert!(twice.contains(&Finding::VersionTwice { stream: stream("a"), version: one }));

    let position = Position::new(1);
    let disorder = found(|content| change(content, 1, |event| event.position = position));
    let stream = stream("a");
    let wrong = Finding::OutOfOrder { stream, version: two, position, before: position };
    assert!(disorder.contains(&wrong), "{disorder:?}");
}

#[test]
fn damage_to_records_is_found() {
    let key = |text: &str| (tenant(), text.parse().unwrap());
    let lost = found(|content| {
        content.records.remove(&key("k2"));
    });
    let (tenant, command) = (tenant(), command(2));
    assert_eq!(lost, [Finding::CommandWithoutKey { tenant, key: "k2".into(), command }]);

    let moved = found(|content| {
        let record = content.records.get_mut(&key("k2")).unwrap();
        Arc::make_mut(record).position = None;
    });
    let last = Some(Position::new(2));
    assert_eq!(moved, [Finding::CommandPosition { tenant, command, stored: None, last }]);

    let versions = found(|content| {
        let record = content.records.get_mut(&key("k2")).unwrap();
        Arc::make_mut(record).streams[0].version = Version::new(9);
    });
    let (stored, actual) = (Some(Version::new(9)), Version::new(2));
    let wrong = Finding::CommandStream { command, stream: stream("a"), stored, actual };
    assert_eq!(versions, [wrong]);

    let forgotten = found(|content| {
        let record = content.records.get_mut(&key("k2")).unwrap();
        Arc::make_mut(record).streams.clear();
    });
    let wrong = Finding::CommandStream { command, stream: stream("a"), stored: None, actual };
    assert_eq!(forgotten, [wrong]);
}

#[test]
fn damage_to_unique_values_is_found() {
    let scope = Name::new("email").unwrap();
    let differs = |value: &str| Finding::HolderDiffers {
        holder: stream("a"),
        scope: scope.clone(),
        value: value.into(),
    };
    assert_eq!(found(|content| content.holders.clear()), [differs("v")]);
    assert_eq!(found(|content| content.stream(&stream("a")).held.clear()), [differs("v")]);
    let several = found(|content| {
        content.stream(&stream("a")).held.push(email("w"));
        content.holders.insert((tenant(), email("w")), stream("a"));
    });
    assert_eq!(several, [Finding::HoldsSeveral { holder: stream("a"), scope, values: 2 }]);
}

#[test]
fn what_is_not_told_is_counted() {
    let mut content = content();
    content.records.clear();
    let report = content.audit(2);
    assert_eq!((report.findings().len(), report.findings_total()), (2, 3));
}
