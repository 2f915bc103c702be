use std::future::Future as _;
use std::task::{Context, Waker};

use sequor_core::ports::{CommitCommand, ReadLog, Store, Transact};
use sequor_core::{Partition, Position, Projections, StoreError};
use sequor_sqlite::{OpenError, SqliteSettings, SqliteStore};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use crate::support::*;

#[tokio::test]
async fn a_second_bus_is_refused_until_the_first_is_gone() {
    let fixture = Fixture::new().await;
    let refused = SqliteStore::open_path(fixture.path()).await.unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }));
    let text = refused.to_string();
    assert!(text.contains("store.db") && text.contains("another bus"), "{text}");
    fixture.store.close().await;
    let second = SqliteStore::open_path(fixture.path()).await.unwrap();
    drop(second);
    SqliteStore::open_path(fixture.path()).await.unwrap();
}

#[tokio::test]
async fn another_way_to_the_file_is_the_same_file() {
    let fixture = Fixture::new().await;
    let link = fixture.folder.path().join("link.db");
    std::os::unix::fs::symlink(fixture.path(), &link).unwrap();
    assert!(matches!(SqliteStore::open_path(link).await, Err(OpenError::InUse { .. })));
}

#[tokio::test]
async fn a_closed_store_answers_unavailable() {
    let fixture = Fixture::new().await;
    let clone = fixture.store.clone();
    fixture.store.close().await;
    assert!(matches!(fixture.commit(deposit("a", 0)).await, Err(StoreError::Unavailable(_))));
    let read = clone.read_after(Partition::ONLY, Position::START, 1).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))));
    clone.close().await;
}

#[tokio::test]
async fn closing_finishes_what_is_queued() {
    let fixture = Fixture::new().await;
    let commits = (0..50).map(|n| fixture.commit(deposit(&format!("a{n}"), 0)));
    let (answers, ()) =
        tokio::join!(futures_util::future::join_all(commits), fixture.store.close());
    answers.into_iter().for_each(|one| drop(fresh(one)));
    fixture.check_whole().await;
}

#[tokio::test]
async fn reopening_keeps_epoch_and_positions() {
    let fixture = Fixture::new().await;
    let epoch = fixture.store.epoch();
    fresh(fixture.commit(deposit("a", 0)).await);
    fixture.store.close().await;
    let store = SqliteStore::open_path(fixture.path()).await.unwrap();
    assert_eq!(store.epoch(), epoch);
    let reopened = Fixture { folder: fixture.folder, store };
    let record = fresh(reopened.commit(deposit("a", 1)).await);
    assert_eq!(record.position, Some(Position::new(2)));
    let other = Fixture::new().await;
    assert_ne!(other.store.epoch(), epoch);
}

#[tokio::test]
async fn positions_of_deleted_events_are_never_used_again() {
    let fixture = Fixture::new().await;
    for version in 0..3 {
        fresh(fixture.commit(deposit("a", version)).await);
    }
    fixture.store.close().await;
    fixture
        .run("DELETE FROM events WHERE position > 1; DELETE FROM commands WHERE number > 1;")
        .await;
    let store = SqliteStore::open_path(fixture.path()).await.unwrap();
    let reopened = Fixture { folder: fixture.folder, store };
    let record = fresh(reopened.commit(deposit("b", 0)).await);
    assert_eq!(record.position, Some(Position::new(4)));
    assert_eq!(reopened.count("SELECT max(number) FROM commands").await, 4);
}

#[tokio::test]
async fn settings_are_checked_before_anything_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = SqliteSettings::new(folder.path().join("store.db"));
    settings.readers_max = 0;
    let refused = SqliteStore::open(settings).await.unwrap_err();
    assert_eq!(refused.to_string(), "readers_max is 0; it takes 1 to 64");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(
        SqliteStore::open_path(":memory:").await.unwrap_err().to_string().contains("memory store")
    );
    let nowhere = SqliteStore::open_path(folder.path().join("no/such/folder.db")).await;
    assert!(matches!(nowhere, Err(OpenError::Unusable { .. })));
}

#[tokio::test]
async fn an_address_is_a_path_with_or_without_its_scheme() {
    for address in ["sqlite://a/b.db", "sqlite:a/b.db", "a/b.db"] {
        let settings: SqliteSettings = address.parse().unwrap();
        assert_eq!(settings.path.to_str(), Some("a/b.db"));
    }
    for address in ["", "sqlite://", "sqlite::memory:", ":memory:", "sqlite://a.db?mode=ro"] {
        assert!(address.parse::<SqliteSettings>().is_err(), "{address}");
    }
}

#[tokio::test]
async fn what_is_no_database_is_named_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.db");
    std::fs::write(&text, "not a database").unwrap();
    for path in [text.as_path(), folder.path()] {
        let refused = SqliteStore::open_path(path).await.unwrap_err();
        assert!(matches!(refused, OpenError::NoDatabase { .. }), "{refused:?}");
        assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was put beside it");
}

#[tokio::test]
async fn a_damaged_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::fs::write(&path, ["SQLite format 3\0", &"damage ".repeat(999)].concat()).unwrap();
    let refused = SqliteStore::open_path(&path).await.unwrap_err();
    let named = matches!(&refused, OpenError::Store { reason, .. } if matches!(**reason, StoreError::Corrupt { .. }));
    assert!(named, "{refused:?}");
    assert!(refused.to_string().contains("store.db"));
}

/// Opens a store where futures are boxed and must be `Send`.
#[async_trait::async_trait]
trait Opens {
    async fn open(&self, path: &std::path::Path) -> SqliteStore;
}

#[async_trait::async_trait]
impl Opens for () {
    async fn open(&self, path: &std::path::Path) -> SqliteStore {
        SqliteStore::open_path(path).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_opens_in_any_task() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    ().open(&path).await.close().await;
    let opened = tokio::spawn(async move { SqliteStore::open_path(path).await });
    opened.await.unwrap().unwrap().close().await;
}

#[tokio::test]
async fn migrations_of_the_users_own_live_beside_the_stores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    SqliteStore::open_path(&path).await.unwrap().close().await;
    let migrations = folder.path().join("migrations");
    std::fs::create_dir(&migrations).unwrap();
    std::fs::write(migrations.join("20260101_seats.sql"), "CREATE TABLE seats (seat TEXT)")
        .unwrap();
    let own = sqlx::migrate::Migrator::new(migrations).await.unwrap();
    let mut raw = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    own.run(&mut raw).await.unwrap();
    SqliteStore::open_path(&path).await.unwrap().close().await;
    own.run(&mut raw).await.unwrap();
}

#[tokio::test]
async fn closing_goes_on_when_nobody_waits_and_everybody_who_waits_is_told_at_the_end() {
    let fixture = Fixture::new().await;
    let transaction = fixture.store.begin(tenant()).await.unwrap();
    let mut given_up = Box::pin(fixture.store.close());
    assert!(given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(given_up);
    let mut waits = Box::pin(fixture.store.close());
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(transaction);
    waits.await;
    let refused = fixture.commit(keyed("k", "a", 0)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    SqliteStore::open_path(fixture.path()).await.unwrap().close().await;
}

#[tokio::test]
async fn positions_with_a_far_start_and_a_hole_are_read_on() {
    let fixture = Fixture::new().await;
    fixture.store.close().await;
    fixture.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', 10000000)").await;
    let store = SqliteStore::open_path(fixture.path()).await.unwrap();
    for n in 0..30 {
        let commit = keyed(&format!("k{n}"), &format!("a{n}"), 0);
        fresh(store.commit(commit, &Projections::none()).await);
    }
    fixture.run("DELETE FROM events WHERE position BETWEEN 10000006 AND 10000025").await;
    let mut after = Position::START;
    let mut seen = Vec::new();
    loop {
        let page = store.read_after(Partition::ONLY, after, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.position;
        seen.extend(page.iter().map(|event| event.position.get() - 10_000_000));
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 26, 27, 28, 29, 30]);
    store.close().await;
}
