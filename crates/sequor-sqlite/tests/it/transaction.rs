use std::future::Future as _;
use std::task::{Context, Waker};
use std::time::Duration;

use sequor_core::ports::{Committed, HistoryRequest, Transact, Transaction};
use sequor_core::{Position, Projections, StoreError, Version};
use sqlx::{AssertSqlSafe, Connection};

use crate::support::*;

fn none() -> Projections<sqlx::SqliteConnection> {
    Projections::none()
}

async fn ended_by(sql: &'static str) -> StoreError {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    transaction.write(keyed("k", "a", 0), &none()).await.unwrap();
    sqlx::raw_sql(sql).execute(transaction.connection()).await.ok();
    let error = transaction.commit().await.unwrap_err();
    assert_eq!(fixture.count("SELECT count(*) FROM commands").await, 0, "{sql}");
    fresh(fixture.commit(keyed("k", "a", 0)).await);
    error
}

#[tokio::test]
async fn a_commit_or_rollback_of_somebody_else_is_detected() {
    for sql in ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN IMMEDIATE", "END"] {
        let error = ended_by(sql).await;
        assert!(matches!(error, StoreError::Corrupt { .. }), "{sql}: {error:?}");
    }
    let swallowed = "CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1); \
                     INSERT OR ROLLBACK INTO t VALUES (1)";
    assert!(matches!(ended_by(swallowed).await, StoreError::Corrupt { .. }));
}

#[tokio::test]
async fn several_commands_become_true_together_and_see_each_other() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    assert!(transaction.claim(tenant(), &key("k1")).await.unwrap().is_none());
    transaction.write(keyed("k1", "a", 0), &none()).await.unwrap();
    assert!(transaction.claim(tenant(), &key("k1")).await.unwrap().is_some());
    transaction.write(keyed("k2", "a", 1), &none()).await.unwrap();
    let stream = stream("a");
    let request =
        HistoryRequest { tenant: tenant(), key: None, stream: Some((&stream, Version::NONE)) };
    assert_eq!(transaction.history(request).await.unwrap().events.len(), 2);
    let records = transaction.commit().await.unwrap();
    let positions: Vec<_> = records.iter().map(|record| record.position).collect();
    assert_eq!(positions, [Some(Position::new(1)), Some(Position::new(2))]);
    fixture.check_whole().await;
}

#[tokio::test]
async fn a_dropped_transaction_rolls_back() {
    let fixture = Fixture::new().await;
    for _ in 0..20 {
        let mut transaction = fixture.store.begin(tenant()).await.unwrap();
        transaction.write(keyed("k", "a", 0), &none()).await.unwrap();
    }
    let record = fresh(fixture.commit(keyed("k", "a", 0)).await);
    assert_eq!(record.position, Some(Position::new(1)));
    assert_eq!(fixture.count("SELECT count(*) FROM commands").await, 1);
}

#[tokio::test]
async fn a_transaction_that_failed_cannot_commit() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    transaction.write(deposit("a", 0), &none()).await.unwrap();
    let conflict = transaction.write(deposit("a", 0), &none()).await;
    assert!(matches!(conflict, Err(StoreError::Conflict { .. })));
    assert!(matches!(transaction.commit().await, Err(StoreError::Conflict { .. })));
    fresh(fixture.commit(deposit("a", 0)).await);
}

#[tokio::test]
async fn user_code_may_nest_transactions() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    sqlx::raw_sql("CREATE TABLE t (a INTEGER)").execute(transaction.connection()).await.unwrap();
    let mut kept = transaction.connection().begin().await.unwrap();
    sqlx::raw_sql("INSERT INTO t VALUES (1)").execute(&mut *kept).await.unwrap();
    kept.commit().await.unwrap();
    let mut dropped = transaction.connection().begin().await.unwrap();
    sqlx::raw_sql("INSERT INTO t VALUES (2)").execute(&mut *dropped).await.unwrap();
    drop(dropped);
    transaction.write(deposit("a", 0), &none()).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(fixture.count("SELECT sum(a) FROM t").await, 1);
    fresh(fixture.commit(deposit("a", 1)).await);
}

#[tokio::test]
async fn a_savepoint_that_was_left_open_is_detected() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    transaction.write(deposit("a", 0), &none()).await.unwrap();
    std::mem::forget(transaction.connection().begin().await.unwrap());
    assert!(matches!(transaction.commit().await, Err(StoreError::Corrupt { .. })));
    fresh(fixture.commit(deposit("a", 0)).await);
}

#[tokio::test]
async fn others_wait_a_bounded_time_for_an_open_transaction() {
    let fixture = Fixture::with(|mut settings| {
        settings.writer_wait_max = Duration::from_millis(50);
        settings
    })
    .await;
    let transaction = fixture.store.begin(tenant()).await.unwrap();
    assert!(matches!(fixture.store.begin(tenant()).await, Err(StoreError::Busy)));
    assert!(matches!(fixture.commit(deposit("a", 0)).await, Err(StoreError::Busy)));
    transaction.commit().await.unwrap();
    // What gave up in the queue is not done later.
    fresh(fixture.commit(deposit("a", 0)).await);
    assert_eq!(fixture.count("SELECT count(*) FROM commands").await, 1);
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_is_whole() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    transaction.write(keyed("k", "a", 0), &none()).await.unwrap();
    // Polled once, so that the writer has it, and dropped; on this one thread the writer has had
    // no turn yet.
    let mut commit = Box::pin(transaction.commit());
    let mut ignored = Context::from_waker(Waker::noop());
    assert!(commit.as_mut().poll(&mut ignored).is_pending());
    drop(commit);
    let next = fixture.commit(deposit("a", 1)).await;
    fresh(next);
    fixture.check_whole().await;
}

#[tokio::test]
async fn a_savepoint_that_undoes_what_was_written_is_noticed() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    sqlx::raw_sql("SAVEPOINT mine").execute(transaction.connection()).await.unwrap();
    transaction.write(keyed("k", "a", 0), &none()).await.unwrap();
    sqlx::raw_sql("ROLLBACK TO mine").execute(transaction.connection()).await.unwrap();
    let refused = transaction.commit().await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    fresh(fixture.commit(keyed("k", "a", 0)).await);
    fixture.check_whole().await;
}

#[tokio::test]
async fn temporary_tables_of_user_code_do_not_stand_in_for_the_stores() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    for table in ["idempotency_keys", "commands", "events", "streams", "unique_keys", "store"] {
        let create = format!("CREATE TEMP TABLE {table} (x)");
        sqlx::raw_sql(AssertSqlSafe(create)).execute(transaction.connection()).await.unwrap();
    }
    transaction.commit().await.unwrap();
    fresh(fixture.commit(keyed("k", "a", 0)).await);
    assert!(matches!(fixture.commit(keyed("k", "a", 0)).await, Ok(Committed::Known(_))));
    assert_eq!(fixture.count("SELECT count(*) FROM idempotency_keys").await, 1);
}
