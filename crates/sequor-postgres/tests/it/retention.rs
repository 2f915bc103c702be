//! Keys past their retention: archived while commands run, answered as expired, exported, dropped.

use sequor_core::ports::{Committed, Transact, Transaction};
use sequor_core::{CommandId, RecordState, StoreError};
use sequor_postgres::{MonthDrop, PostgresStore};
use sequor_testserver::Database;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use crate::support::{
    checked, commit, count, draft, fresh, installed, key, keyed, open, record, tenant, with_key,
};

/// Makes keys older than they are.
async fn age(database: &Database, by: &str, like: &str) {
    let sql = format!(
        "UPDATE sequor.idempotency_keys SET claimed_at = claimed_at - interval '{by}'
        WHERE key LIKE '{like}'"
    );
    database.run(&sql).await;
}

async fn state(store: &PostgresStore, text: &str) -> Option<RecordState> {
    record(store, text).await.map(|record| record.state)
}

#[tokio::test]
async fn a_key_is_archived_when_it_is_past_its_retention_and_not_before() {
    let database = installed().await;
    let store = open(&database).await;
    for n in 0..10 {
        fresh(commit(&store, keyed(&format!("k{n}"), "a", n)).await);
    }
    age(&database, "89 days 23 hours", "k%").await;
    assert_eq!(store.reap_keys(100).await.unwrap(), 0);
    age(&database, "2 hours", "k_").await;
    assert_eq!(store.reap_keys(3).await.unwrap(), 3);
    assert_eq!(store.reap_keys(100).await.unwrap(), 7);
    assert_eq!(store.reap_keys(100).await.unwrap(), 0);
}

#[tokio::test]
async fn an_archived_key_is_expired_and_does_not_run() {
    let database = installed().await;
    let store = open(&database).await;
    let first = fresh(commit(&store, keyed("old", "a", 0)).await);
    age(&database, "91 days", "old").await;
    assert_eq!(store.reap_keys(10).await.unwrap(), 1);
    assert_eq!(state(&store, "old").await, Some(RecordState::Expired));
    let expired = |answer: Result<Committed, StoreError>| match answer {
        Ok(Committed::Known(record)) if record.state == RecordState::Expired => record.command_id,
        other => panic!("not expired: {other:?}"),
    };
    let again: CommandId = expired(commit(&store, keyed("old", "a", 1)).await);
    assert_eq!(again, first.command_id);
    // In a batch with others, who are not disturbed; and in a handler.
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        let text = if n == 9 { "old".to_owned() } else { format!("new{n}") };
        callers.spawn(async move { (n, commit(&store, keyed(&text, &text, 0)).await) });
    }
    for (n, answer) in callers.join_all().await {
        match n {
            9 => assert_eq!(expired(answer), first.command_id),
            _ => drop(fresh(answer)),
        }
    }
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let claimed = transaction.claim(tenant(1), &key("old")).await.unwrap().unwrap();
    assert_eq!((claimed.command_id, claimed.state), (first.command_id, RecordState::Expired));
    let live = "SELECT count(*) FROM sequor.idempotency_keys WHERE key = 'old'";
    assert_eq!(count(&database, live).await, 0);
    // Another tenant has never used it.
    fresh(commit(&store, checked(with_key(draft(tenant(2), "a", 0), "old"))).await);
}

/// A key that tells its age is not looked up; one that is as old as the archive is.
#[tokio::test]
async fn keys_that_tell_their_age_are_told_apart() {
    let database = installed().await;
    let mut session = database.session().await;
    let young = "SELECT sequor.is_young($1, '2026-01-10 00:00:00+00')";
    for (text, is_young) in [
        // 2026-02-01, 2026-01-12 and 2025-12-01.
        ("019c165e-0800-7000-8000-000000000000", true),
        ("019baf5f-6c00-7000-8000-000000000000", false),
        ("019ad76e-c400-7000-8000-000000000000", false),
        ("019c165e-0800-4000-8000-000000000000", false),
        ("any-key", false),
    ] {
        let found: bool =
            sqlx::query_scalar(young).bind(text).fetch_one(&mut session).await.unwrap();
        assert_eq!(found, is_young, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reapers_and_commands_run_beside_each_other() {
    let database = installed().await;
    let store = open(&database).await;
    for n in 0..200 {
        fresh(commit(&store, keyed(&format!("old{n}"), "a", n)).await);
    }
    age(&database, "100 days", "old%").await;
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let store = open(&database).await;
        tasks.spawn(async move {
            let mut moved = 0;
            loop {
                match store.reap_keys(7).await.unwrap() {
                    0 => return moved,
                    some => moved += some,
                }
            }
        });
    }
    let busy = {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..100 {
                fresh(commit(&store, keyed(&format!("new{n}"), "b", n)).await);
                let old = commit(&store, keyed(&format!("old{n}"), "a", 200)).await;
                assert!(matches!(old, Ok(Committed::Known(_))), "{old:?}");
            }
        })
    };
    let moved: u64 = tasks.join_all().await.iter().sum();
    busy.await.unwrap();
    let rest = store.reap_keys(1_000).await.unwrap();
    assert_eq!(moved + rest, 200);
    let months = store.archive_months().await.unwrap();
    assert_eq!(months.iter().map(|month| month.keys).sum::<u64>(), 200);
}

#[tokio::test]
async fn a_month_is_exported_with_a_checksum_and_dropped_when_it_is_over() {
    let database = installed().await;
    let store = open(&database).await;
    for n in 0..5 {
        fresh(commit(&store, keyed(&format!("k{n}"), "a", n)).await);
    }
    age(&database, "91 days", "k%").await;
    store.reap_keys(10).await.unwrap();
    let month = store.archive_months().await.unwrap().remove(0);
    let mut lines = Vec::new();
    let exported = store.export_archive_month(&month, &mut lines).await.unwrap();
    assert_eq!(store.drop_archive_month(&exported).await.unwrap(), MonthDrop::NotOver);
    let lines = String::from_utf8(lines).unwrap();
    let (body, trailer) = lines.trim_end().rsplit_once('\n').unwrap();
    let digest = Sha256::digest(format!("{body}\n"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, exported.sha256);
    assert!(trailer.contains(&digest) && trailer.contains("\"keys\":5"), "{trailer}");
    assert_eq!(body.lines().count(), 5);

    // The same a month later.
    move_to_the_past(&database, &month.month).await;
    let past = store.archive_months().await.unwrap().remove(0);
    let mut changed = store.export_archive_month(&past, &mut Vec::new()).await.unwrap();
    changed.month.keys += 1;
    assert_eq!(store.drop_archive_month(&changed).await.unwrap(), MonthDrop::Changed);
    assert_eq!(store.archive_months().await.unwrap(), [past]);
    changed.month.keys -= 1;
    assert_eq!(store.drop_archive_month(&changed).await.unwrap(), MonthDrop::Dropped);
    assert_eq!(store.archive_months().await.unwrap(), []);
    for month in ["2020-02", "2020-01", "February"] {
        changed.month.month = month.to_owned();
        assert_eq!(store.drop_archive_month(&changed).await.unwrap(), MonthDrop::Missing);
    }
    fresh(commit(&store, keyed("k0", "a", 5)).await);
}

/// Turns this month's table of the archive into that of an earlier one.
async fn move_to_the_past(database: &Database, month: &str) {
    let name = format!("sequor.idempotency_keys_archive_{}", month.replace('-', "_"));
    let past = "sequor.idempotency_keys_archive_2020_02";
    database
        .run(&format!(
            "ALTER TABLE sequor.idempotency_keys_archive DETACH PARTITION {name};
            UPDATE {name} SET archived_at = '2020-02-03 04:05:06+00';
            ALTER TABLE {name} RENAME TO idempotency_keys_archive_2020_02;
            ALTER TABLE sequor.idempotency_keys_archive ATTACH PARTITION {past}
                FOR VALUES FROM ('2020-02-01 00:00:00+00') TO ('2020-03-01 00:00:00+00')"
        ))
        .await;
}

#[tokio::test]
async fn the_guarantee_is_not_shortened_by_accident() {
    let database = installed().await;
    let mut owner = database.session().await;
    let short = "SELECT sequor.keep_keys('1 hour')";
    let refused = sqlx::raw_sql(short).execute(&mut owner).await.unwrap_err();
    assert!(refused.to_string().contains("24 hours"), "{refused}");
    database.run("SELECT sequor.keep_keys('1 hour', even_short => true)").await;
    database.run("SELECT sequor.keep_keys('30 days')").await;
    let store = open(&database).await;
    fresh(commit(&store, keyed("k", "a", 0)).await);
    age(&database, "31 days", "k").await;
    assert_eq!(store.reap_keys(10).await.unwrap(), 1);
}
