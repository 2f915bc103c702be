use futures_util::future::join_all;
use sequor_core::ports::{CommitCommand, Committed};
use sequor_core::{Projections, StoreError, UniqueChange};

use crate::support::*;

#[tokio::test]
async fn concurrent_commits_share_a_transaction() {
    let fixture = Fixture::new().await;
    let commits = (0..100).map(|n| fixture.commit(keyed(&format!("k{n}"), &format!("a{n}"), 0)));
    for committed in join_all(commits).await {
        fresh(committed);
    }
    let stats = fixture.store.stats();
    assert_eq!((stats.commits, stats.alone), (100, 0));
    assert!(stats.transactions <= 3, "{stats:?}");
    fixture.check_whole().await;
}

#[tokio::test]
async fn a_lone_caller_gets_a_transaction_a_commit() {
    let fixture = Fixture::new().await;
    for version in 0..5 {
        fresh(fixture.commit(deposit("a", version)).await);
    }
    assert_eq!(fixture.store.stats().transactions, 5);
}

#[tokio::test]
async fn positions_and_versions_follow_each_other_within_a_batch() {
    let fixture = Fixture::new().await;
    let commits = (0..50).map(|version| fixture.commit(deposit("a", version)));
    let records: Vec<_> = join_all(commits).await.into_iter().map(fresh).collect();
    let positions: Vec<u64> = records.iter().map(|one| one.position.unwrap().get()).collect();
    assert_eq!(positions, (1..=50).collect::<Vec<u64>>());
    assert_eq!(fixture.count("SELECT version FROM streams").await, 50);
}

#[tokio::test]
async fn a_key_that_is_twice_in_a_batch_takes_effect_once() {
    let fixture = Fixture::new().await;
    let commits = (0..20).map(|_| fixture.commit(keyed("k", "a", 0)));
    let answers = join_all(commits).await;
    let fresh = answers.iter().filter(|one| matches!(one, Ok(Committed::Fresh(_)))).count();
    let known = answers.iter().filter(|one| matches!(one, Ok(Committed::Known(_)))).count();
    assert_eq!((fresh, known), (1, 19));
    fixture.check_whole().await;
}

#[tokio::test]
async fn a_batch_of_replays_begins_no_transaction() {
    let fixture = Fixture::new().await;
    fresh(fixture.commit(keyed("k", "a", 0)).await);
    let before = fixture.store.stats().transactions;
    for answer in join_all((0..10).map(|_| fixture.commit(keyed("k", "a", 0)))).await {
        assert!(matches!(answer, Ok(Committed::Known(_))));
    }
    assert_eq!(fixture.store.stats().transactions, before);
}

#[tokio::test]
async fn a_conflict_leaves_its_neighbours_unharmed() {
    let fixture = Fixture::new().await;
    let commits = (0..20).map(|n| {
        let expected = if n == 7 { 3 } else { 0 };
        fixture.commit(deposit(&format!("a{n}"), expected))
    });
    for (n, answer) in join_all(commits).await.into_iter().enumerate() {
        match answer {
            Err(StoreError::Conflict { .. }) => assert_eq!(n, 7),
            other => drop(fresh(other)),
        }
    }
    fixture.check_whole().await;
}

#[tokio::test]
async fn a_projection_that_fails_leaves_its_neighbours_unharmed() {
    for how in [How::Errs, How::Panics, How::Commits, How::RollsBack] {
        let fixture = Fixture::new().await;
        let projections = picky("a7", how);
        let commits = (0..20).map(|n| {
            fixture.store.commit(keyed(&format!("k{n}"), &format!("a{n}"), 0), &projections)
        });
        for (n, answer) in join_all(commits).await.into_iter().enumerate() {
            match answer {
                Err(StoreError::Corrupt { .. }) => assert_eq!(n, 7),
                other => drop(fresh(other)),
            }
        }
        assert_eq!(fixture.count("SELECT count(*) FROM commands").await, 19);
        assert_eq!(fixture.count("SELECT count(*) FROM seen").await, 19);
        fixture.check_whole().await;
    }
}

#[tokio::test]
async fn a_verdict_that_hangs_on_a_failed_neighbour_is_given_anew() {
    let fixture = Fixture::new().await;
    let (bad, good) = (picky("a", How::Errs), Projections::none());
    // The second has the first one's key and stream, and would be a replay of it.
    let first = fixture.store.commit(keyed("k", "a", 0), &bad);
    let second = fixture.store.commit(keyed("k", "a", 0), &good);
    // In company they queue up in the order in which they came.
    let company = fixture.store.commit(keyed("other", "b", 0), &good);
    let (_, first, second) = tokio::join!(company, first, second);
    assert!(matches!(first, Err(StoreError::Corrupt { what }) if what.contains("`picky`")));
    fresh(second);
}

#[tokio::test]
async fn unique_values_move_on_within_a_batch() {
    let fixture = Fixture::new().await;
    let hold = |value: &str| UniqueChange::Hold(email(value));
    let commits = [
        with_unique("a", 0, hold("x")),
        with_unique("a", 1, hold("y")),
        with_unique("b", 0, hold("x")),
        with_unique("c", 0, hold("y")),
        with_unique("a", 2, UniqueChange::ReleaseAll),
        with_unique("c", 0, hold("y")),
    ];
    let answers = join_all(commits.map(|commit| fixture.commit(commit))).await;
    let oks: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(oks, [true, true, true, false, true, true]);
    assert!(matches!(answers[3], Err(StoreError::UniqueTaken { .. })));
    let holders = "SELECT group_concat(value || aggregate_id, ' ') FROM unique_keys";
    let held: String =
        sqlx::query_scalar(holders).fetch_one(&mut fixture.raw().await).await.unwrap();
    assert_eq!(held, "xb yc");
    let again = fixture.commit(with_unique("d", 0, hold("x"))).await;
    assert!(matches!(again, Err(StoreError::UniqueTaken { holder, .. }) if holder == stream("b")));
}
