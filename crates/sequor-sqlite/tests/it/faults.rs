use std::time::Duration;

use futures_util::FutureExt;
use sequor_core::ports::{Committed, Transact, Transaction};
use sequor_core::{Json, Limits, StoreError};

use crate::support::*;

fn large(id: &str) -> sequor_core::Commit {
    let mut draft = draft(id, 0);
    draft.payload = Json::of(&"x".repeat(100_000)).unwrap();
    draft.check(&Limits::DEFAULT).unwrap()
}

#[tokio::test]
async fn a_full_file_is_unavailable_until_there_is_room() {
    let fixture = Fixture::with(|mut settings| {
        settings.file_bytes_max = Some(1 << 20);
        settings
    })
    .await;
    let mut stored = 0;
    let error = loop {
        match fixture.commit(large(&format!("a{stored}"))).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(stored > 3);
    // Who fits still passes, in the batch of one who does not.
    let (big, small) = tokio::join!(fixture.commit(large("b")), fixture.commit(deposit("c", 0)));
    assert!(matches!(big, Err(StoreError::Unavailable(_))));
    fresh(small);
    fixture.run("UPDATE commands SET payload = 'null'").await;
    fresh(fixture.commit(large("b")).await);
    fixture.check_whole().await;
}

#[tokio::test]
async fn a_connection_that_became_read_only_is_replaced() {
    let fixture = Fixture::new().await;
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    sqlx::raw_sql("PRAGMA query_only = ON").execute(transaction.connection()).await.unwrap();
    drop(transaction);
    let error = fixture.commit(deposit("a", 0)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    fresh(fixture.commit(deposit("a", 0)).await);
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_unavailable_until_it_is_back() {
    let fixture = Fixture::new().await;
    fresh(fixture.commit(deposit("a", 0)).await);
    let aside = fixture.folder.path().join("aside");
    std::fs::rename(fixture.path(), &aside).unwrap();
    std::fs::create_dir(fixture.path()).unwrap();
    let mut transaction = fixture.store.begin(tenant()).await.unwrap();
    sqlx::raw_sql("PRAGMA query_only = ON").execute(transaction.connection()).await.unwrap();
    drop(transaction);
    for _ in 0..3 {
        let error = fixture.commit(deposit("a", 1)).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    std::fs::remove_dir(fixture.path()).unwrap();
    std::fs::rename(aside, fixture.path()).unwrap();
    fresh(fixture.commit(deposit("a", 1)).await);
}

#[tokio::test]
async fn another_writer_makes_us_busy_for_a_bounded_time() {
    let fixture = Fixture::with(|mut settings| {
        settings.writer_wait_max = Duration::from_millis(50);
        settings
    })
    .await;
    let mut other = fixture.raw().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let error = fixture.commit(deposit("a", 0)).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy), "{error:?}");
    assert!(matches!(fixture.store.begin(tenant()).await, Err(StoreError::Busy)));
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    fresh(fixture.commit(deposit("a", 0)).await);
}

#[tokio::test]
async fn what_another_process_wrote_is_seen_before_the_next_commit() {
    let fixture = Fixture::new().await;
    fresh(fixture.commit(keyed("k", "a", 0)).await);
    fixture.run("DELETE FROM idempotency_keys").await;
    fresh(fixture.commit(keyed("k", "a", 1)).await);
    fixture.run("UPDATE streams SET version = 9").await;
    let error = fixture.commit(deposit("a", 2)).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { actual, .. } if actual.get() == 9));
}

#[tokio::test]
async fn dropped_commits_leave_nothing_half_done() {
    let fixture = Fixture::new().await;
    for n in 0..200 {
        let (key, id) = (format!("k{n}"), format!("a{n}"));
        let mut commit = Box::pin(fixture.commit(keyed(&key, &id, 0)));
        for _ in 0..n % 7 {
            if (&mut commit).now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(commit);
    }
    for n in 0..200 {
        let answer = fixture.commit(keyed(&format!("k{n}"), &format!("a{n}"), 0)).await;
        assert!(matches!(answer, Ok(Committed::Fresh(_) | Committed::Known(_))), "{answer:?}");
    }
    assert_eq!(fixture.count("SELECT count(*) FROM commands").await, 200);
    fixture.check_whole().await;
}

#[tokio::test]
async fn dropped_reads_lose_no_connection() {
    use sequor_core::Version;
    use sequor_core::ports::{HistoryRequest, ReadHistory};
    let fixture = Fixture::with(|mut settings| {
        settings.readers_max = 1;
        settings.writer_wait_max = Duration::from_millis(500);
        settings
    })
    .await;
    for version in 0..200 {
        fresh(fixture.commit(deposit("a", version)).await);
    }
    let stream = stream("a");
    let request =
        HistoryRequest { tenant: tenant(), key: None, stream: Some((&stream, Version::NONE)) };
    for n in 0..100 {
        let mut read = Box::pin(fixture.store.history(request.clone()));
        for _ in 0..n % 5 {
            if (&mut read).now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let history = fixture.store.history(request).await.unwrap();
    assert_eq!(history.events.len(), 200);
}
