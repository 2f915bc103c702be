//! Keys that were archived, and keys whose month was dropped: told from those that were lost.

use sequor_core::audit::{AuditReport, AuditSettings, CommandRow, Finding};
use sequor_core::ports::Audit as _;
use sequor_core::{CommandId, StoreError};
use sequor_postgres::{MonthDrop, PostgresStore};
use sequor_testserver::Database;
use sqlx::Connection as _;
use uuid::Uuid;

use crate::support::{commit, deposit, fresh, installed, keyed, open, tenant};

/// Ten commands under `old0` to `old9` and two under `new0` and `new1`. The old keys are archived,
/// in a month that is long over.
async fn archived() -> (Database, PostgresStore, Vec<CommandId>) {
    let database = installed().await;
    let store = open(&database).await;
    let mut commands = Vec::new();
    for n in 0..10 {
        commands.push(fresh(commit(&store, keyed(&format!("old{n}"), "a", n)).await).command_id);
    }
    let age = "UPDATE sequor.idempotency_keys SET claimed_at = claimed_at - interval '200 days'";
    database.run(age).await;
    for n in 0..2 {
        fresh(commit(&store, keyed(&format!("new{n}"), "a", 10 + n)).await);
    }
    assert_eq!(store.reap_keys(100).await.unwrap(), 10);
    let back = "SELECT sequor.make_archive_month('2020-02-03 04:05:06+00');
        UPDATE sequor.idempotency_keys_archive SET archived_at = '2020-02-03 04:05:06+00'";
    database.run(back).await;
    (database, store, commands)
}

async fn drop_months(store: &PostgresStore) {
    let month = store.archive_months().await.unwrap().remove(0);
    let exported = store.export_archive_month(&month, &mut Vec::new()).await.unwrap();
    assert_eq!(store.drop_archive_month(&exported).await.unwrap(), MonthDrop::Dropped);
}

async fn audit(store: &PostgresStore) -> AuditReport {
    store.audit(AuditSettings::default()).await.unwrap()
}

#[tokio::test]
async fn archived_and_purged_keys_are_no_findings() {
    let (_database, store, _) = archived().await;
    let report = audit(&store).await;
    assert!(report.is_clean(), "{report}");
    let counts = report.counts;
    assert_eq!((counts.keys, counts.keys_archived, counts.keys_purged), (2, 10, 0));
    drop_months(&store).await;
    let report = audit(&store).await;
    assert!(report.is_clean(), "{report}");
    let counts = report.counts;
    assert_eq!((counts.keys, counts.keys_archived, counts.keys_purged), (2, 0, 10));
    // A purged key runs again, and is that of two commands from then on.
    fresh(commit(&store, keyed("old3", "a", 12)).await);
    let report = audit(&store).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.counts.keys, 3);
}

#[tokio::test]
async fn a_lost_key_is_told_from_those_that_were_purged() {
    let (database, store, commands) = archived().await;
    database.run("DELETE FROM sequor.idempotency_keys_archive WHERE key = 'old4'").await;
    let (tenant, command) = (tenant(1), commands[4]);
    let lost = Finding::CommandWithoutKey { tenant, key: "old4".into(), command };
    assert_eq!(audit(&store).await.findings(), [lost], "no month was dropped");
    drop_months(&store).await;
    let among_them = Finding::KeysPurged { commands: 10, purged: 9 };
    assert_eq!(audit(&store).await.findings(), [among_them], "they cannot be told apart");
}

/// As many as were purged, and not the same.
#[tokio::test]
async fn keys_that_are_lost_in_place_of_purged_ones_are_found() {
    let (database, store, _) = archived().await;
    drop_months(&store).await;
    let swap = "DELETE FROM sequor.idempotency_keys WHERE key = 'new0';
        INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
        SELECT tenant_id, key, command_id FROM sequor.commands WHERE key = 'old1'";
    database.run(swap).await;
    let swapped = Finding::KeysPurged { commands: 10, purged: 10 };
    assert_eq!(audit(&store).await.findings(), [swapped]);
}

/// A key that tells that it is younger than the archive was never in it.
#[tokio::test]
async fn a_young_key_that_is_lost_is_named_also_after_months_were_dropped() {
    let (database, store, _) = archived().await;
    drop_months(&store).await;
    // Of the year 2100.
    let young = "03bb2cc3-d800-7000-8000-000000000000".to_owned();
    let command = fresh(commit(&store, keyed(&young, "a", 12)).await).command_id;
    database.run("DELETE FROM sequor.idempotency_keys WHERE key LIKE '________-%'").await;
    let lost = Finding::CommandWithoutKey { tenant: tenant(1), key: young, command };
    assert_eq!(audit(&store).await.findings(), [lost]);
}

#[tokio::test]
async fn an_archived_key_without_its_command_or_there_twice_is_found() {
    let (database, store, commands) = archived().await;
    let revive = "INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
        SELECT tenant_id, key, command_id FROM sequor.commands WHERE key = 'old2'";
    database.run(revive).await;
    let (tenant, archived) = (tenant(1), true);
    let twice = Finding::KeyTwice { tenant, key: "old2".into(), live: 1, archived: 1 };
    assert_eq!(audit(&store).await.findings(), [twice]);
    database.run("DELETE FROM sequor.idempotency_keys WHERE key = 'old2'").await;
    let ghost = Uuid::from_u128(96);
    let sql = format!(
        "UPDATE sequor.idempotency_keys_archive SET command_id = '{ghost}' WHERE key = 'old2'"
    );
    database.run(&sql).await;
    let command = CommandRow::Id(CommandId(ghost));
    let findings = audit(&store).await.findings().to_vec();
    let stray = Finding::KeyWithoutCommand { tenant, key: "old2".into(), command, archived };
    let command = commands[2];
    let lost = Finding::CommandWithoutKey { tenant, key: "old2".into(), command };
    assert_eq!(findings, [stray, lost]);
}

/// What an audit looks at must be there until it has ended; commands go on meanwhile.
#[tokio::test]
async fn a_month_is_not_dropped_while_somebody_audits() {
    let (database, store, _) = archived().await;
    let month = store.archive_months().await.unwrap().remove(0);
    let exported = store.export_archive_month(&month, &mut Vec::new()).await.unwrap();
    let mut auditor = database.session().await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ROLE sequor_system;
        LOCK TABLE sequor.idempotency_keys_archive IN ACCESS SHARE MODE";
    sqlx::raw_sql(begin).execute(&mut auditor).await.unwrap();
    let dropped = store.drop_archive_month(&exported).await;
    assert!(matches!(dropped, Err(StoreError::Busy)), "{dropped:?}");
    fresh(commit(&store, deposit("a", 12)).await);
    assert_eq!(store.reap_keys(10).await.unwrap(), 0);
    auditor.close().await.unwrap();
}
