//! Each kind of damage is found, with its row and nothing else.

use sequor_core::audit::{AuditReport, AuditSettings, CommandRow, Finding};
use sequor_core::checkpoint::CheckpointId;
use sequor_core::ports::{Audit as _, Committed, Transact, Transaction};
use sequor_core::{CommandId, Name, Partition, Position, Projections, UniqueChange, Version};

use crate::support::*;

/// Commands 1 to 5: three under the keys `k0` to `k2` with an event of `a` each, one without a key
/// with an event of `b`, and one by which `b` takes a value. Then a change behind the store's back.
async fn damaged(sql: &str) -> (Fixture, Vec<CommandId>) {
    let fixture = Fixture::new().await;
    let mut commands = Vec::new();
    for version in 0..3 {
        let record = fresh(fixture.commit(keyed(&format!("k{version}"), "a", version)).await);
        commands.push(record.command_id);
    }
    commands.push(fresh(fixture.commit(deposit("b", 0)).await).command_id);
    let taken = with_unique("b", 1, UniqueChange::Hold(email("ada@home")));
    commands.push(fresh(fixture.commit(taken).await).command_id);
    assert!(audit(&fixture).await.is_clean());
    fixture.run(sql).await;
    (fixture, commands)
}

async fn audit(fixture: &Fixture) -> AuditReport {
    fixture.store.audit(AuditSettings::default()).await.unwrap()
}

async fn found(sql: &str) -> (Vec<Finding>, Vec<CommandId>) {
    let (fixture, commands) = damaged(sql).await;
    (audit(&fixture).await.findings().to_vec(), commands)
}

fn version(number: u64) -> Version {
    Version::new(number)
}

fn position(number: u64) -> Position {
    Position::new(number)
}

#[tokio::test]
async fn a_lost_event_leaves_a_hole_and_a_command_that_remembers_it() {
    let (findings, commands) = found("DELETE FROM events WHERE position = 2").await;
    let (tenant, command) = (tenant(), commands[1]);
    assert_eq!(
        findings,
        [
            Finding::VersionsMissing { stream: stream("a"), from: version(2), to: version(2) },
            Finding::CommandPosition { tenant, command, stored: Some(position(2)), last: None },
        ]
    );
}

#[tokio::test]
async fn lost_events_at_the_end_show_in_the_version_of_their_stream() {
    let (findings, commands) = found("DELETE FROM events WHERE position IN (2, 3)").await;
    let (stored, last) = (Some(version(3)), Some(version(1)));
    let lost = Finding::StreamVersion { stream: stream("a"), stored, last };
    assert_eq!(findings[0], lost);
    let of_commands: Vec<_> = findings[1..].iter().map(ToString::to_string).collect();
    for (command, sentence) in commands[1..3].iter().zip(&of_commands) {
        assert!(sentence.contains(&command.to_string()), "{sentence}");
    }
    assert_eq!(of_commands.len(), 2);
}

#[tokio::test]
async fn a_stream_without_its_row_or_at_another_version_is_found() {
    let last = Some(version(3));
    let (findings, _) = found("DELETE FROM streams WHERE aggregate_id = 'a'").await;
    assert_eq!(findings, [Finding::StreamVersion { stream: stream("a"), stored: None, last }]);
    let (findings, _) = found("UPDATE streams SET version = 7 WHERE aggregate_id = 'a'").await;
    let stored = Some(version(7));
    assert_eq!(findings, [Finding::StreamVersion { stream: stream("a"), stored, last }]);
    let (findings, _) =
        found("INSERT INTO streams SELECT tenant_id, aggregate, 'ghost', 2 FROM streams LIMIT 1")
            .await;
    let (stored, stream) = (Some(version(2)), stream("ghost"));
    assert_eq!(findings, [Finding::StreamVersion { stream, stored, last: None }]);
}

#[tokio::test]
async fn positions_against_the_order_of_versions_are_found() {
    let (findings, _) = found(
        "UPDATE events SET position = 99 WHERE position = 2;
        UPDATE commands SET position = 99 WHERE number = 2;
        UPDATE sqlite_sequence SET seq = 99 WHERE name = 'events'",
    )
    .await;
    let (version, position, before) = (version(3), position(3), position(99));
    assert_eq!(findings, [Finding::OutOfOrder { stream: stream("a"), version, position, before }]);
}

#[tokio::test]
async fn a_counter_of_positions_that_is_behind_is_found() {
    let (findings, _) = found("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'events'").await;
    let (drawn, highest) = (position(3), position(5));
    assert_eq!(findings, [Finding::PositionsBehind { drawn, highest }]);
}

#[tokio::test]
async fn an_event_without_its_command_is_found() {
    let (findings, _) = found("DELETE FROM commands WHERE number = 4").await;
    let (stream, version, position) = (stream("b"), version(1), position(4));
    let command = CommandRow::Number(4);
    assert_eq!(findings, [Finding::EventWithoutCommand { stream, version, position, command }]);
}

#[tokio::test]
async fn a_command_that_remembers_something_else_than_its_events_is_found() {
    let (findings, commands) = found("UPDATE commands SET position = NULL WHERE number = 2").await;
    let (tenant, command, last) = (tenant(), commands[1], Some(position(2)));
    assert_eq!(findings, [Finding::CommandPosition { tenant, command, stored: None, last }]);
    let (actual, stream) = (version(2), stream("a"));
    for (streams, stored) in [
        (r#"[["account","a",7]]"#, Some(version(7))),
        ("[]", None),
        ("{", None),
        (r#"[["account","a","x"]]"#, None),
    ] {
        let sql = format!("UPDATE commands SET streams = '{streams}' WHERE number = 2");
        let (findings, commands) = found(&sql).await;
        let (command, stream) = (commands[1], stream.clone());
        let wrong = Finding::CommandStream { command, stream, stored, actual };
        assert_eq!(findings, [wrong], "{streams}");
    }
}

#[tokio::test]
async fn a_version_that_was_only_read_and_never_there_is_found() {
    let streams = r#"[["account","a",9],["account","b",1]]"#;
    let sql = format!("UPDATE commands SET streams = '{streams}' WHERE number = 4");
    let (findings, commands) = found(&sql).await;
    let (command, stored) = (commands[3], Some(version(9)));
    let wrong = Finding::CommandStream { command, stream: stream("a"), stored, actual: version(3) };
    assert_eq!(findings, [wrong]);
}

#[tokio::test]
async fn a_command_that_is_there_twice_is_found() {
    let (findings, commands) = found(
        "UPDATE commands SET command_id = (SELECT command_id FROM commands WHERE number = 4)
        WHERE number = 5",
    )
    .await;
    let (tenant, command) = (tenant(), commands[3]);
    assert_eq!(findings, [Finding::CommandTwice { tenant, command, rows: 2 }]);
}

#[tokio::test]
async fn a_command_without_its_key_is_found() {
    let (findings, commands) = found("DELETE FROM idempotency_keys WHERE key = 'k1'").await;
    let (tenant, command) = (tenant(), commands[1]);
    let lost = Finding::CommandWithoutKey { tenant, key: "k1".into(), command };
    assert_eq!(findings, [lost]);
}

#[tokio::test]
async fn a_key_without_its_command_or_of_another_is_found() {
    let stray = "INSERT INTO idempotency_keys (tenant_id, key, command)
        SELECT tenant_id, 'stray', ";
    let (findings, commands) = found(&format!("{stray} 4 FROM streams LIMIT 1")).await;
    let (tenant, key) = (tenant(), "stray".to_owned());
    let (command, executed_under, archived) = (commands[3], None, false);
    let wrong =
        Finding::KeyOfAnother { tenant, key: key.clone(), command, executed_under, archived };
    assert_eq!(findings, [wrong]);
    let (findings, _) = found(&format!("{stray} 99 FROM streams LIMIT 1")).await;
    let command = CommandRow::Number(99);
    assert_eq!(findings, [Finding::KeyWithoutCommand { tenant, key, command, archived }]);
}

#[tokio::test]
async fn rows_of_another_tenant_do_not_count() {
    let (findings, _) = found(
        "UPDATE commands SET tenant_id = x'018f2f6e000070008000000000000002' WHERE number = 4",
    )
    .await;
    let sentences: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(sentences[0].contains("command number 4, which is not there"), "{sentences:?}");
}

#[tokio::test]
async fn a_reservation_without_a_lease_is_found() {
    let (findings, _) =
        found("UPDATE idempotency_keys SET state = 1, fence = 3 WHERE key = 'k1'").await;
    let tenant = tenant();
    assert_eq!(findings, [Finding::ReservationWithoutLease { tenant, key: "k1".into() }]);
    let (fixture, _) = damaged(
        "UPDATE idempotency_keys SET state = 1, fence = 3, lease_until = 1 WHERE key = 'k1'",
    )
    .await;
    let report = audit(&fixture).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.counts.reservations, report.counts.in_doubt), (1, 1));
}

#[tokio::test]
async fn values_that_nobody_can_hold_are_found() {
    let scope = Name::new("email").unwrap();
    let (findings, _) = found("UPDATE unique_keys SET aggregate_id = 'ghost'").await;
    let (holder, value) = (stream("ghost"), "ada@home".to_owned());
    assert_eq!(findings, [Finding::HolderUnknown { holder, scope: scope.clone(), value }]);
    let (findings, _) = found(
        "INSERT INTO unique_keys SELECT tenant_id, scope, 'more', aggregate, aggregate_id
        FROM unique_keys",
    )
    .await;
    assert_eq!(findings, [Finding::HoldsSeveral { holder: stream("b"), scope, values: 2 }]);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_found() {
    let (findings, _) = found("UPDATE streams SET aggregate = '' WHERE aggregate_id = 'a'").await;
    let sentences: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(sentences.iter().any(|one| one.contains("`aggregate` is no name")), "{sentences:?}");
    let (findings, _) = found("UPDATE idempotency_keys SET state = 7 WHERE key = 'k1'").await;
    let sentence = findings[0].to_string();
    assert!(sentence.contains("CHECK constraint failed in idempotency_keys"), "{sentence}");
}

#[tokio::test]
async fn findings_are_bounded_and_counted() {
    let (fixture, _) = damaged("DELETE FROM idempotency_keys").await;
    let settings = AuditSettings { findings_max: 2, ..AuditSettings::default() };
    let report = fixture.store.audit(settings).await.unwrap();
    assert_eq!((report.findings().len(), report.findings_total()), (2, 3));
    assert!(report.to_string().ends_with("and 1 more like these"), "{report}");
}

#[tokio::test]
async fn an_audit_writes_nothing_and_leaves_its_reader_as_it_was() {
    let fixture = Fixture::with(|mut settings| {
        settings.readers_max = 1;
        settings
    })
    .await;
    fresh(fixture.commit(keyed("k", "a", 0)).await);
    assert!(audit(&fixture).await.is_clean());
    fresh(fixture.commit(deposit("a", 1)).await);
    assert_eq!(audit(&fixture).await.counts.events, 2, "a new snapshot");
    let mut open = fixture.store.begin(tenant()).await.unwrap();
    open.write(deposit("a", 2), &Projections::none()).await.unwrap();
    assert_eq!(audit(&fixture).await.counts.events, 2, "what is open does not show");
    open.commit().await.unwrap();
    let known = fixture.commit(keyed("k", "a", 0)).await;
    assert!(matches!(known, Ok(Committed::Known(_))), "{known:?}");
}

/// A projection has come to position 4, and has parked `b` before its only event there.
const PROJECTED: &str = "INSERT INTO checkpoints VALUES ('sums', 2, 0, 4);
    INSERT INTO projected_streams
    SELECT tenant_id, 'sums', 2, 'account', 'a', 0, 3, NULL, NULL, NULL FROM streams LIMIT 1;
    INSERT INTO projected_streams
    SELECT tenant_id, 'sums', 2, 'account', 'b', 0, 0, 'why', 1, 1 FROM streams LIMIT 1;";

fn projected(id: &str, taken: Option<u64>, wanted: u64) -> Finding {
    Finding::ProjectedStream {
        projection: Name::new("sums").unwrap(),
        projection_version: 2,
        stream: stream(id),
        taken: taken.map(version),
        wanted: version(wanted),
    }
}

#[tokio::test]
async fn a_projection_that_has_taken_in_something_else_than_the_log_is_found() {
    let found = async |damage: &str| found(&format!("{PROJECTED}{damage}")).await.0;
    assert_eq!(found("").await, []);
    let lost = found("DELETE FROM projected_streams WHERE aggregate_id = 'a'").await;
    assert_eq!(lost, [projected("a", None, 3)]);
    let twice = found("UPDATE projected_streams SET version = 4 WHERE aggregate_id = 'a'").await;
    assert_eq!(twice, [projected("a", Some(4), 3)]);
    let freed = found("UPDATE projected_streams SET version = 1 WHERE aggregate_id = 'b'").await;
    assert_eq!(freed, [projected("b", Some(1), 1)]);
    let ahead = found(
        "UPDATE checkpoints SET position = 9;
        UPDATE projected_streams SET version = 1 WHERE aggregate_id = 'b'",
    )
    .await;
    let checkpoint = CheckpointId {
        projection: Name::new("sums").unwrap(),
        version: 2,
        partition: Partition::ONLY,
    };
    let (position, last) = (position(9), position(5));
    assert_eq!(ahead, [Finding::CheckpointAhead { checkpoint, position, last }]);
    assert!(ahead[0].to_string().contains("whose last is 5"), "{}", ahead[0]);
}
