//! What a commit consists of: bounds, order, numbers.

use sequor_core::commit::{CommitDraft, StreamDraft};
use sequor_core::{
    AggregateId, CommandId, CommandMeta, CorrelationId, EventName, Invalid, Json, Limits, Name,
    StreamId, TenantId, Timestamp, Version,
};
use uuid::Uuid;

const HAPPENED: EventName = EventName { name: "happened", schema_version: 1 };

pub(crate) fn tenant(number: u128) -> TenantId {
    TenantId::new(Uuid::from_u128(number)).unwrap()
}

pub(crate) fn stream(tenant: TenantId, id: &str) -> StreamId {
    let (aggregate, id) = (Name::new("thing").unwrap(), AggregateId::new(id).unwrap());
    StreamId { tenant, aggregate, id }
}

pub(crate) fn draft(tenant: TenantId, streams: Vec<StreamDraft>) -> CommitDraft {
    CommitDraft {
        meta: CommandMeta {
            command_id: CommandId(Uuid::from_u128(1)),
            tenant,
            key: None,
            actor: None,
            correlation_id: CorrelationId(Uuid::from_u128(1)),
            causation_id: None,
            time: Timestamp::from_micros(0).unwrap(),
        },
        name: Name::new("do").unwrap(),
        payload: Json::of(&()).unwrap(),
        fingerprint: None,
        output: Json::of(&()).unwrap(),
        streams,
        events: Vec::new(),
    }
}

fn part(id: &str, expected: u64) -> StreamDraft {
    let stream = stream(tenant(1), id);
    StreamDraft { stream, expected: Version::new(expected), after: None, unique: Vec::new() }
}

fn event(stream: usize) -> (usize, EventName, Json) {
    (stream, HAPPENED, Json::of(&stream).unwrap())
}

#[test]
fn streams_are_sorted_and_events_keep_their_order_and_their_stream() {
    let mut given = draft(tenant(1), vec![part("b", 5), part("a", 0), part("c", 9)]);
    given.events = vec![event(0), event(1), event(0)];
    let commit = given.check(&Limits::DEFAULT).unwrap();
    let streams: Vec<_> =
        commit.streams.iter().map(|s| (s.stream.id.as_str(), s.next.get())).collect();
    assert_eq!(streams, [("a", 1), ("b", 7), ("c", 9)]);
    let events: Vec<_> = commit.events.iter().map(|e| (e.stream, e.version.get())).collect();
    assert_eq!(events, [(1, 6), (0, 1), (1, 7)]);
}

#[test]
fn a_commit_names_an_aggregate_once_and_its_own_tenant_only() {
    let twice = draft(tenant(1), vec![part("a", 0), part("b", 0), part("a", 0)]);
    assert!(matches!(twice.check(&Limits::DEFAULT), Err(Invalid::StreamTwice { .. })));
    let foreign = draft(tenant(2), vec![part("a", 0)]);
    assert_eq!(foreign.check(&Limits::DEFAULT).unwrap_err(), Invalid::TenantsDiffer);
    let mut orphan = draft(tenant(1), vec![part("a", 0)]);
    orphan.events = vec![event(1)];
    assert_eq!(orphan.check(&Limits::DEFAULT).unwrap_err(), Invalid::EventWithoutStream);
}

#[test]
fn every_bound_is_checked_at_its_edge() {
    let limits =
        Limits { payload_bytes_max: 10, commit_bytes_max: 25, events_max: 2, streams_max: 2 };
    let payload = |bytes: usize| Json::of(&"x".repeat(bytes - 2)).unwrap();
    let with = |bytes| CommitDraft { payload: payload(bytes), ..draft(tenant(1), Vec::new()) };
    assert!(with(10).check(&limits).is_ok());
    let refused = with(11).check(&limits).unwrap_err();
    assert_eq!(refused, Invalid::TooLarge { what: "command", bytes: 11, max: 10 });

    let mut many = draft(tenant(1), vec![part("a", 0)]);
    many.events = vec![event(0), event(0), event(0)];
    let refused = many.clone().check(&limits).unwrap_err();
    assert_eq!(refused, Invalid::TooMany { what: "events", count: 3, max: 2 });
    many.events = vec![(0, HAPPENED, payload(9)), (0, HAPPENED, payload(9))];
    let refused = many.check(&limits).unwrap_err();
    assert_eq!(refused, Invalid::TooLarge { what: "commit", bytes: 26, max: 25 });

    let wide = draft(tenant(1), vec![part("a", 0), part("b", 0), part("c", 0)]);
    assert_eq!(
        wide.check(&limits).unwrap_err(),
        Invalid::TooMany { what: "streams", count: 3, max: 2 }
    );
}
