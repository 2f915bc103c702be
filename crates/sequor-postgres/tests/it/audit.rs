//! Each kind of damage is found, with its row and nothing else; and what is no damage is not.

mod purged;

use sequor_core::audit::{AuditReport, AuditSettings, CommandRow, Finding};
use sequor_core::checkpoint::CheckpointId;
use sequor_core::ports::{Audit as _, Store as _, Transact, Transaction};
use sequor_core::{
    CommandId, Name, Partition, Position, Projections, UniqueChange, UniqueKey, Version,
};
use sequor_postgres::PostgresStore;
use sequor_testserver::Database;
use sqlx::Connection as _;
use uuid::Uuid;

use crate::support::{
    checked, commit, deposit, draft, fresh, installed, key, keyed, open, settings, stream, tenant,
};

/// A store with its commands: three under the keys `k0` to `k2` with an event of `a` each, one
/// without a key with an event of `b`, and one by which `b` takes a value.
struct Fixture {
    database: Database,
    store: PostgresStore,
    commands: Vec<CommandId>,
    /// The positions of their events.
    positions: Vec<Position>,
}

impl Fixture {
    async fn new() -> Self {
        let database = installed().await;
        let store = open(&database).await;
        let mut held = draft(tenant(1), "b", 1);
        let email = UniqueKey::new(Name::new("email").unwrap(), "ada@home").unwrap();
        held.streams[0].unique.push(UniqueChange::Hold(email));
        let of_keys = (0..3).map(|version| keyed(&format!("k{version}"), "a", version));
        let (mut commands, mut positions) = (Vec::new(), Vec::new());
        for one in of_keys.chain([deposit("b", 0), checked(held)]) {
            let record = fresh(commit(&store, one).await);
            commands.push(record.command_id);
            positions.push(record.position.unwrap());
        }
        let fixture = Self { database, store, commands, positions };
        let report = fixture.audit().await;
        assert!(report.is_clean(), "{report}");
        fixture
    }

    async fn audit(&self) -> AuditReport {
        self.store.audit(AuditSettings::default()).await.unwrap()
    }

    /// What an audit finds after a change of the owner's, which is undone afterwards by hand.
    async fn found(&self, sql: &str) -> Vec<Finding> {
        self.database.run(sql).await;
        self.audit().await.findings().to_vec()
    }

    fn partition(&self) -> Partition {
        self.store.partition(tenant(1))
    }
}

/// What an audit finds in a store that was damaged.
async fn found(sql: &str) -> (Vec<Finding>, Fixture) {
    let fixture = Fixture::new().await;
    (fixture.found(sql).await, fixture)
}

fn version(number: u64) -> Version {
    Version::new(number)
}

#[tokio::test]
async fn a_position_that_is_there_twice_is_found() {
    let (findings, fixture) = found(
        "ALTER TABLE sequor.events DROP CONSTRAINT events_position_once;
        UPDATE sequor.events SET position = (SELECT max(position) FROM sequor.events)
        WHERE aggregate_id = 'a' AND version = 3;
        UPDATE sequor.commands SET position = (SELECT max(position) FROM sequor.events)
        WHERE key = 'k2'",
    )
    .await;
    let (partition, position) = (fixture.partition(), fixture.positions[4]);
    assert_eq!(findings, [Finding::PositionTwice { partition, position, events: 2 }]);
}

#[tokio::test]
async fn a_sequence_of_positions_that_is_behind_is_found() {
    let (findings, fixture) = found("SELECT setval('sequor.positions', 1, false)").await;
    let highest = fixture.positions[4];
    assert_eq!(findings, [Finding::PositionsBehind { drawn: Position::START, highest }]);
}

#[tokio::test]
async fn an_event_in_another_partition_than_its_tenant_is_found() {
    let (findings, fixture) = found(
        "UPDATE sequor.events SET partition = (partition + 1) % 16
        WHERE aggregate_id = 'a' AND version = 2",
    )
    .await;
    let expected = fixture.partition();
    let partition = Partition::numbered((expected.get() + 1) % 16);
    let (stream, version, position) = (stream("a"), version(2), fixture.positions[1]);
    let wrong = Finding::WrongPartition { stream, version, position, partition, expected };
    assert_eq!(findings, [wrong]);
}

#[tokio::test]
async fn the_server_knows_the_partition_of_every_tenant() {
    let fixture = Fixture::new().await;
    let mut session = fixture.database.session().await;
    for number in 1..=200 {
        let tenant = tenant(number * 7_919);
        for count in [1_u16, 7, 16, 1_024] {
            let told = sqlx::query_scalar("SELECT sequor.partition_of($1, $2)");
            let told = told.bind(tenant.as_uuid()).bind(i16::try_from(count).unwrap());
            let told: i16 = told.fetch_one(&mut session).await.unwrap();
            let known = Partition::of(tenant, count.try_into().unwrap());
            assert_eq!(u16::try_from(told).unwrap(), known.get(), "{tenant} of {count}");
        }
    }
    session.close().await.unwrap();
}

#[tokio::test]
async fn positions_against_the_order_of_versions_are_found() {
    let (findings, fixture) = found(
        "UPDATE sequor.events SET position = nextval('sequor.positions')
        WHERE aggregate_id = 'a' AND version = 2;
        UPDATE sequor.commands SET position = (SELECT max(position) FROM sequor.events)
        WHERE key = 'k1'",
    )
    .await;
    let (version, position) = (version(3), fixture.positions[2]);
    let before = Position::new(fixture.positions[4].get() + 1);
    let wrong = Finding::OutOfOrder { stream: stream("a"), version, position, before };
    assert_eq!(findings, [wrong]);
}

#[tokio::test]
async fn a_lost_event_leaves_a_hole_and_a_command_that_remembers_it() {
    let (findings, fixture) =
        found("DELETE FROM sequor.events WHERE aggregate_id = 'a' AND version = 2").await;
    let (tenant, command) = (tenant(1), fixture.commands[1]);
    let stored = Some(fixture.positions[1]);
    assert_eq!(
        findings,
        [
            Finding::VersionsMissing { stream: stream("a"), from: version(2), to: version(2) },
            Finding::CommandPosition { tenant, command, stored, last: None },
        ]
    );
}

#[tokio::test]
async fn a_version_that_is_there_twice_is_found() {
    let (findings, _) = found(
        "ALTER TABLE sequor.events DROP CONSTRAINT events_version_once;
        INSERT INTO sequor.events
        SELECT tenant_id, aggregate, aggregate_id, version, partition, nextval('sequor.positions'),
            name, schema_version, payload, command_id
        FROM sequor.events WHERE aggregate_id = 'a' AND version = 3;
        UPDATE sequor.commands SET position = (SELECT max(position) FROM sequor.events)
        WHERE key = 'k2'",
    )
    .await;
    assert_eq!(findings, [Finding::VersionTwice { stream: stream("a"), version: version(3) }]);
}

#[tokio::test]
async fn a_stream_without_its_row_or_at_another_version_is_found() {
    let last = Some(version(3));
    let (findings, fixture) =
        found("UPDATE sequor.streams SET version = 7 WHERE aggregate_id = 'a'").await;
    let stored = Some(version(7));
    assert_eq!(findings, [Finding::StreamVersion { stream: stream("a"), stored, last }]);
    let findings = fixture.found("DELETE FROM sequor.streams WHERE aggregate_id = 'a'").await;
    assert_eq!(findings, [Finding::StreamVersion { stream: stream("a"), stored: None, last }]);
    let (findings, _) = found(
        "INSERT INTO sequor.streams (tenant_id, aggregate, aggregate_id, version, command_id)
        SELECT tenant_id, aggregate, 'ghost', 0, command_id FROM sequor.streams LIMIT 1",
    )
    .await;
    let (stored, stream) = (Some(Version::NONE), stream("ghost"));
    assert_eq!(findings, [Finding::StreamVersion { stream, stored, last: None }]);
}

#[tokio::test]
async fn a_stream_that_names_another_maker_is_found() {
    let (findings, fixture) = found(
        "UPDATE sequor.streams SET command_id = (SELECT command_id FROM sequor.commands
            WHERE key = 'k0') WHERE aggregate_id = 'a'",
    )
    .await;
    let (stored, maker) = (fixture.commands[0], fixture.commands[2]);
    let wrong = Finding::StreamMaker { stream: stream("a"), version: version(3), stored, maker };
    assert_eq!(findings, [wrong]);
}

#[tokio::test]
async fn an_event_without_its_command_is_found() {
    let (findings, fixture) = found(
        "DELETE FROM sequor.commands USING sequor.events AS event
        WHERE commands.command_id = event.command_id AND event.aggregate_id = 'b'
            AND event.version = 1",
    )
    .await;
    let (version, position) = (version(1), fixture.positions[3]);
    let command = CommandRow::Id(fixture.commands[3]);
    let wrong = Finding::EventWithoutCommand { stream: stream("b"), version, position, command };
    assert_eq!(findings, [wrong]);
}

#[tokio::test]
async fn a_command_that_remembers_something_else_than_its_events_is_found() {
    let fixture = Fixture::new().await;
    let (tenant, command) = (tenant(1), fixture.commands[1]);
    let (actual, last) = (version(2), Some(fixture.positions[1]));
    for (streams, stored) in [
        (r#"[["account","a",7]]"#, Some(version(7))),
        ("[]", None),
        ("{}", None),
        (r#"[["account","a","x"]]"#, None),
    ] {
        let sql = format!("UPDATE sequor.commands SET streams = '{streams}' WHERE key = 'k1'");
        let findings = fixture.found(&sql).await;
        let wrong = Finding::CommandStream { command, stream: stream("a"), stored, actual };
        assert_eq!(findings, [wrong], "{streams}");
    }
    let mend = r#"UPDATE sequor.commands SET streams = '[["account","a",2],["account","b",9]]'
        WHERE key = 'k1'"#;
    let (stored, actual) = (Some(version(9)), version(2));
    let wrong = Finding::CommandStream { command, stream: stream("b"), stored, actual };
    assert_eq!(fixture.found(mend).await, [wrong], "read only, and never there");
    let forget = r#"UPDATE sequor.commands SET streams = '[["account","a",2]]', position = NULL
        WHERE key = 'k1'"#;
    let wrong = Finding::CommandPosition { tenant, command, stored: None, last };
    assert_eq!(fixture.found(forget).await, [wrong]);
}

#[tokio::test]
async fn a_command_without_its_key_is_found() {
    let (findings, fixture) = found("DELETE FROM sequor.idempotency_keys WHERE key = 'k1'").await;
    let (tenant, command) = (tenant(1), fixture.commands[1]);
    let lost = Finding::CommandWithoutKey { tenant, key: "k1".into(), command };
    assert_eq!(findings, [lost]);
}

const STRAY: &str = "INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
    SELECT tenant_id, 'stray', ";

#[tokio::test]
async fn a_key_without_its_command_or_of_another_is_found() {
    let fixture = Fixture::new().await;
    let (tenant, key, archived) = (tenant(1), || "stray".to_owned(), false);
    let sql = format!("{STRAY} command_id FROM sequor.commands WHERE key IS NULL LIMIT 1");
    let findings = fixture.found(&sql).await;
    assert!(
        matches!(&findings[..], [Finding::KeyOfAnother { key, executed_under: None, .. }]
            if key == "stray"),
        "{findings:?}"
    );
    fixture.database.run("DELETE FROM sequor.idempotency_keys WHERE key = 'stray'").await;
    let (one, two) = (fixture.commands[0], "k0".to_owned());
    let sql = format!("{STRAY} command_id FROM sequor.commands WHERE key = 'k0'");
    let executed_under = Some(two);
    let wrong =
        Finding::KeyOfAnother { tenant, key: key(), command: one, executed_under, archived };
    assert_eq!(fixture.found(&sql).await, [wrong]);
    fixture.database.run("DELETE FROM sequor.idempotency_keys WHERE key = 'stray'").await;
    let ghost = Uuid::from_u128(99);
    let sql = format!("{STRAY} '{ghost}' FROM sequor.commands LIMIT 1");
    let command = CommandRow::Id(CommandId(ghost));
    let wrong = Finding::KeyWithoutCommand { tenant, key: key(), command, archived };
    assert_eq!(fixture.found(&sql).await, [wrong]);
}

#[tokio::test]
async fn a_claim_that_has_outlived_its_transaction_is_found() {
    let sql = format!(
        "ALTER TABLE sequor.idempotency_keys DISABLE TRIGGER forget_vain_claim;
        {STRAY} '{}' FROM sequor.commands LIMIT 1",
        Uuid::nil()
    );
    let (findings, _) = found(&sql).await;
    assert_eq!(findings, [Finding::ClaimLeft { tenant: tenant(1), key: "stray".into() }]);
}

#[tokio::test]
async fn a_reservation_is_counted_and_one_without_a_lease_is_found() {
    let fixture = Fixture::new().await;
    let reserve = format!(
        "INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id, state, lease_until, fence)
        SELECT tenant_id, 'r' || n, '{}', 1, now() + n * interval '1 hour', 1
        FROM (SELECT tenant_id FROM sequor.commands LIMIT 1) AS one, generate_series(-1, 1, 2) AS n",
        Uuid::from_u128(98)
    );
    assert_eq!(fixture.found(&reserve).await, []);
    let counts = fixture.audit().await.counts;
    assert_eq!((counts.keys, counts.reservations, counts.in_doubt), (3, 2, 1));
    let findings =
        fixture.found("UPDATE sequor.idempotency_keys SET fence = NULL WHERE key = 'r1'").await;
    let (tenant, key) = (tenant(1), "r1".to_owned());
    assert_eq!(findings, [Finding::ReservationWithoutLease { tenant, key }]);
}

#[tokio::test]
async fn values_that_nobody_can_hold_are_found() {
    let scope = Name::new("email").unwrap();
    let (findings, _) = found("UPDATE sequor.unique_keys SET aggregate_id = 'ghost'").await;
    let (holder, value) = (stream("ghost"), "ada@home".to_owned());
    assert_eq!(findings, [Finding::HolderUnknown { holder, scope: scope.clone(), value }]);
    let (findings, _) = found(
        "INSERT INTO sequor.unique_keys SELECT tenant_id, scope, 'more', aggregate, aggregate_id
        FROM sequor.unique_keys",
    )
    .await;
    assert_eq!(findings, [Finding::HoldsSeveral { holder: stream("b"), scope, values: 2 }]);
}

#[tokio::test]
async fn a_message_without_its_command_is_found() {
    let fixture = Fixture::new().await;
    let send = |message: u128, command: CommandId| {
        format!(
            "INSERT INTO sequor.outbox SELECT tenant_id, '{}', partition, position, '{command}',
                'topic', 'a', 'told', '{{}}', '{{}}' FROM sequor.events LIMIT 1",
            Uuid::from_u128(message)
        )
    };
    assert_eq!(fixture.found(&send(1, fixture.commands[0])).await, []);
    let command = CommandId(Uuid::from_u128(97));
    let (tenant, message) = (tenant(1), Uuid::from_u128(2));
    let lost = Finding::MessageWithoutCommand { tenant, message, command };
    assert_eq!(fixture.found(&send(2, command)).await, [lost]);
    assert_eq!(fixture.audit().await.counts.messages, 2);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_found() {
    let (findings, _) =
        found("UPDATE sequor.streams SET aggregate = '' WHERE aggregate_id = 'a'").await;
    let sentences: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(sentences.iter().any(|one| one.contains("`aggregate` is no name")), "{sentences:?}");
}

#[tokio::test]
async fn findings_are_bounded_and_counted() {
    let fixture = Fixture::new().await;
    fixture.database.run("DELETE FROM sequor.idempotency_keys").await;
    let settings = AuditSettings { findings_max: 2, ..AuditSettings::default() };
    let report = fixture.store.audit(settings).await.unwrap();
    assert_eq!((report.findings().len(), report.findings_total()), (2, 3));
    assert!(report.to_string().ends_with("and 1 more like these"), "{report}");
}

/// The session goes back as it came: the next one on it is a command.
#[tokio::test]
async fn an_audit_leaves_its_session_as_it_was() {
    let database = installed().await;
    let mut settings = settings(&database);
    (settings.connections_max, settings.writers_max) = (2, 1);
    let store = PostgresStore::open(settings).await.unwrap();
    fresh(commit(&store, keyed("k", "a", 0)).await);
    for events in 1..5 {
        let report = store.audit(AuditSettings::default()).await.unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.counts.events, events, "a new snapshot");
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        assert!(transaction.claim(tenant(1), &key("k")).await.unwrap().is_some());
        transaction.write(deposit("a", events), &Projections::none()).await.unwrap();
        transaction.commit().await.unwrap();
    }
    store.close().await;
}

/// A projection has come to the event of `b` that is its first, and has parked `b` before it.
const PROJECTED: &str = "INSERT INTO sequor.checkpoints (projection, projection_version, partition,
        position)
    SELECT 'sums', 2, partition, position FROM sequor.events WHERE aggregate_id = 'b' AND version = 1;
    INSERT INTO sequor.projected_streams
    SELECT tenant_id, 'sums', 2, aggregate, aggregate_id, partition, 3
    FROM sequor.events WHERE aggregate_id = 'a' AND version = 3;
    INSERT INTO sequor.projected_streams
    SELECT tenant_id, 'sums', 2, aggregate, aggregate_id, partition, 0, 'why', 1, now()
    FROM sequor.events WHERE aggregate_id = 'b' AND version = 1;";

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
    let fixture = Fixture::new().await;
    let found = async |sql: &str| fixture.found(sql).await;
    assert_eq!(found(PROJECTED).await, []);
    let twice = "UPDATE sequor.projected_streams SET version = 4 WHERE aggregate_id = 'a'";
    assert_eq!(found(twice).await, [projected("a", Some(4), 3)]);
    let lost = "DELETE FROM sequor.projected_streams WHERE aggregate_id = 'a'";
    assert_eq!(found(lost).await, [projected("a", None, 3)]);
    let freed = "UPDATE sequor.projected_streams SET version = 1 WHERE aggregate_id = 'b'";
    assert_eq!(found(freed).await, [projected("a", None, 3), projected("b", Some(1), 1)]);
    let ahead = found(
        "DELETE FROM sequor.projected_streams;
        INSERT INTO sequor.projected_streams
        SELECT tenant_id, 'sums', 2, aggregate, aggregate_id, partition, max(version)
        FROM sequor.events GROUP BY tenant_id, aggregate, aggregate_id, partition;
        UPDATE sequor.checkpoints SET position = 1000",
    );
    let checkpoint = CheckpointId {
        projection: Name::new("sums").unwrap(),
        version: 2,
        partition: fixture.partition(),
    };
    let (position, last) = (Position::new(1_000), fixture.positions[4]);
    assert_eq!(ahead.await, [Finding::CheckpointAhead { checkpoint, position, last }]);
}
