use sequor_core::ports::{HistoryRequest, ReadHistory, ReadLog};
use sequor_core::{Partition, Position, StoreError, Version};

use crate::support::*;

/// Three events of `a` under keys, then a change behind the store's back.
async fn damaged(sql: &str) -> Fixture {
    let fixture = Fixture::new().await;
    for version in 0..3 {
        fresh(fixture.commit(keyed(&format!("k{version}"), "a", version)).await);
    }
    fixture.run(sql).await;
    fixture
}

async fn stream_error(fixture: &Fixture) -> String {
    let stream = stream("a");
    let stream = Some((&stream, Version::NONE));
    let request = HistoryRequest { tenant: tenant(), key: None, stream };
    corrupt(fixture.store.history(request).await)
}

async fn log_error(fixture: &Fixture) -> String {
    corrupt(fixture.store.read_after(Partition::ONLY, Position::START, 10).await)
}

async fn record_error(fixture: &Fixture) -> String {
    let key = key("k1");
    let request = HistoryRequest { tenant: tenant(), key: Some(&key), stream: None };
    let error = corrupt(fixture.store.history(request).await);
    let committed = corrupt(fixture.commit(keyed("k1", "a", 3)).await);
    assert_eq!(error, committed);
    error
}

fn corrupt<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(StoreError::Corrupt { what }) => what,
        other => panic!("not corrupt: {other:?}"),
    }
}

#[tokio::test]
async fn a_damaged_event_is_named_with_its_place() {
    let cases = [
        ("payload = '{'", "`payload` is not JSON"),
        ("name = 'a b'", "`name` is no name"),
        ("schema_version = -1", "`schema_version`"),
        ("command = 99", "`command_id` is missing"),
    ];
    for (change, what) in cases {
        let fixture = damaged(&format!("UPDATE events SET {change} WHERE position = 2")).await;
        for error in [stream_error(&fixture).await, log_error(&fixture).await] {
            assert!(error.contains(what) && error.contains("position 2"), "{change}: {error}");
        }
    }
    let fixture = damaged("UPDATE events SET tenant_id = x'00' WHERE position = 2").await;
    assert!(log_error(&fixture).await.contains("`tenant_id` is not 16 bytes"));
}

#[tokio::test]
async fn a_hole_in_a_stream_is_named() {
    let fixture = damaged("DELETE FROM events WHERE position = 2").await;
    assert_eq!(stream_error(&fixture).await, "account/a has version 3 where 2 is missing");
    let fixture = damaged("DELETE FROM events WHERE position = 1").await;
    assert_eq!(stream_error(&fixture).await, "account/a has version 2 where 1 is missing");
}

#[tokio::test]
async fn a_damaged_record_is_named() {
    let cases = [
        ("commands SET command_id = x'00' WHERE number = 2", "`command_id` is not 16 bytes"),
        ("commands SET fingerprint = x'00' WHERE number = 2", "`fingerprint`"),
        ("commands SET streams = '{}' WHERE number = 2", "`streams`"),
        ("commands SET output = '' WHERE number = 2", "`output` is not JSON"),
        ("commands SET position = -2 WHERE number = 2", "`position` is negative"),
        ("commands SET recorded_at = 9223372036854775807 WHERE number = 2", "`recorded_at`"),
        ("idempotency_keys SET state = 7 WHERE key = 'k1'", "`state` is neither"),
        ("idempotency_keys SET state = 1 WHERE key = 'k1'", "`lease_until` is missing"),
        ("idempotency_keys SET command = 99 WHERE key = 'k1'", "is missing"),
    ];
    for (change, what) in cases {
        let fixture = damaged(&format!("UPDATE {change}")).await;
        let error = record_error(&fixture).await;
        assert!(error.contains(what), "{change}: {error}");
    }
}

#[tokio::test]
async fn a_damaged_record_harms_nobody_else_in_its_batch() {
    let fixture = damaged("UPDATE commands SET output = '{' WHERE number = 2").await;
    let commits = [keyed("k1", "a", 3), keyed("k9", "b", 0), keyed("k8", "c", 0)];
    let answers = futures_util::future::join_all(commits.map(|one| fixture.commit(one))).await;
    let oks: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(oks, [false, true, true]);
}

#[tokio::test]
async fn a_negative_version_of_a_stream_is_damage() {
    let fixture = damaged("UPDATE streams SET version = -1").await;
    assert!(corrupt(fixture.commit(deposit("a", 3)).await).contains("`version` is negative"));
}

#[tokio::test]
async fn a_version_that_exists_is_not_written_twice() {
    // The table of streams lags behind the events, as after a bad repair.
    let fixture = damaged("UPDATE streams SET version = 2").await;
    let error = corrupt(fixture.commit(deposit("a", 2)).await);
    assert!(error.contains("events.version"), "{error}");
    fresh(fixture.commit(deposit("b", 0)).await);
}
