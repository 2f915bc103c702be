//! An open transaction: true for itself, nothing for others, and nothing at all when dropped.

use std::sync::Arc;

use sequor_core::ports::{HistoryRequest, Transact, Transaction};
use sequor_core::{IdempotencyKey, Invalid, StoreError, Version};
use tokio::sync::oneshot;

use crate::harness::{Harness, Tally};
use crate::sample::{DOOMED, EMAIL, account, command, json, tenant};
use crate::world::{World, assert_conflict, assert_taken, fresh};

/// A transaction reads what it has written: events, records, and what others wrote before.
pub(crate) async fn transaction_sees_its_own_writes<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).event().build()).await;
    let mut transaction = world.begin(t).await;
    let commit = command(t).key("k").giving(&json("7")).on("a", 1).events(2).build();
    let id = commit.meta.command_id;
    world.write(&mut transaction, commit).await.unwrap();
    let (key, a): (IdempotencyKey, _) = ("k".parse().unwrap(), account(t, "a"));
    let after = Some((&a, Version::new(1)));
    let events = HistoryRequest { tenant: t, key: None, stream: after };
    let history = transaction.history(events).await.unwrap();
    let versions: Vec<_> = history.events.iter().map(|event| event.version.get()).collect();
    assert_eq!(versions, [2, 3]);
    let known = HistoryRequest { tenant: t, key: Some(&key), stream: after };
    let record = transaction.history(known).await.unwrap().record.unwrap();
    assert_eq!((record.command_id, record.output), (id, json("7")));
    assert_eq!(world.events_in(&mut transaction, &a).await.len(), 3);
}

/// Until it commits, nobody else sees anything of it.
pub(crate) async fn transaction_is_invisible_before_its_commit<H: Harness>(world: World<H>) {
    let (t, a) = (tenant(1), account(tenant(1), "a"));
    let mut transaction = world.begin(t).await;
    let commit = command(t).key("k").on("a", 0).event().build();
    transaction.write(commit, &world.counting()).await.unwrap();
    assert!(world.events(&a).await.is_empty());
    assert_eq!(world.record(t, "k").await, None);
    assert_eq!(world.log(t).await, []);
    assert_eq!(world.tally(t).await, Tally::default());
    transaction.commit().await.unwrap();
    assert_eq!(world.version(&a).await, 1);
    assert!(world.record(t, "k").await.is_some());
    assert_eq!(world.log(t).await.len(), 1);
    assert_eq!(world.tally(t).await.count, 1);
}

/// A dropped transaction leaves nothing, and no lock.
pub(crate) async fn transaction_dropped_writes_nothing<H: Harness>(world: World<H>) {
    let (t, a) = (tenant(1), account(tenant(1), "a"));
    let mut transaction = world.begin(t).await;
    let commit = command(t).key("k").on("a", 0).events(3).hold(EMAIL, "x").build();
    transaction.write(commit, &world.counting()).await.unwrap();
    drop(transaction);
    assert!(world.events(&a).await.is_empty());
    assert_eq!(world.record(t, "k").await, None);
    assert_eq!(world.log(t).await, []);
    assert_eq!(world.tally(t).await, Tally::default());
    world.fresh(command(t).on("b", 0).event().hold(EMAIL, "x").build()).await;
}

/// Several commands become true together, in order, each with its own record.
pub(crate) async fn transaction_makes_several_commands_true<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut transaction = world.begin(t).await;
    for (n, key) in ["k0", "k1", "k2"].into_iter().enumerate() {
        let commit = command(t).key(key).on("a", n as u64).event().on(key, 0).event().build();
        world.write(&mut transaction, commit).await.unwrap();
    }
    world.write(&mut transaction, command(t).build()).await.unwrap();
    let records = transaction.commit().await.unwrap();
    assert_eq!(records.len(), 4);
    assert_eq!(records[3].position, None);
    for (n, key) in ["k0", "k1", "k2"].into_iter().enumerate() {
        assert_eq!(world.record(t, key).await.as_ref(), Some(&records[n]));
    }
    assert_eq!(world.version(&account(t, "a")).await, 3);
    let log = world.log(t).await;
    let ids: Vec<_> = log.iter().map(|event| event.stream.id.as_str()).collect();
    assert_eq!(ids, ["a", "k0", "a", "k1", "a", "k2"]);
    assert!(records[0].position < records[1].position);
    assert_eq!(records[2].position, log.last().map(|event| event.position));
}

/// A claim finds what was recorded before.
pub(crate) async fn transaction_claims_find_records<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let record = world.fresh(command(t).key("k").on("a", 0).event().build()).await;
    let mut transaction = world.begin(t).await;
    assert_eq!(world.claim(&mut transaction, t, "k").await, Some(record));
    assert_eq!(world.claim(&mut transaction, t, "K").await, None);
    drop(transaction);
    let mut transaction = world.begin(tenant(2)).await;
    assert_eq!(world.claim(&mut transaction, tenant(2), "k").await, None);
}

/// A claim finds what the same transaction has written under the key.
pub(crate) async fn transaction_claims_find_its_own_writes<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut transaction = world.begin(t).await;
    assert_eq!(world.claim(&mut transaction, t, "k").await, None);
    let commit = command(t).key("k").on("a", 0).event().build();
    world.write(&mut transaction, commit.clone()).await.unwrap();
    let own = world.claim(&mut transaction, t, "k").await.unwrap();
    assert_eq!(own.command_id, commit.meta.command_id);
    assert_eq!(world.claim(&mut transaction, t, "other").await, None);
    let records = transaction.commit().await.unwrap();
    assert_eq!(records, [own]);
}

/// A key that is known cannot be written again past its claim.
pub(crate) async fn transaction_refuses_to_write_a_known_key<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let record = world.fresh(command(t).key("k").on("a", 0).event().build()).await;
    let mut transaction = world.begin(t).await;
    let again = command(t).key("k").on("b", 0).event().build();
    let outcome = world.write(&mut transaction, again).await;
    assert!(outcome.is_err(), "a command cannot be written twice");
    drop(transaction);
    assert_eq!(world.record(t, "k").await, Some(record));
    assert_eq!(world.log(t).await.len(), 1);
}

/// While it is open, other writers wait; then they go on.
pub(crate) async fn transaction_holds_off_other_writers<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let transaction = world.begin(t).await;
    let mut others = Vec::new();
    for number in [1, 2, 3] {
        let commit = command(tenant(number)).on("b", 0).event().build();
        others.push(world.start(commit).await);
    }
    for other in &others {
        world.assert_waits(other).await;
    }
    assert_eq!(world.log(t).await, []);
    transaction.commit().await.unwrap();
    for other in others {
        fresh(other.await.unwrap());
    }
}

/// Transactions wait for each other, and none loses a write.
pub(crate) async fn transaction_after_transaction_loses_no_write<H: Harness>(world: World<H>) {
    let (t, a) = (tenant(1), account(tenant(1), "a"));
    let tasks = (0..10).map(|_| {
        let (world, a) = (world.clone(), a.clone());
        tokio::spawn(async move { append_until_done(&world, &a).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(world.version(&a).await, 10);
    assert_eq!(world.tally(t).await, Tally { count: 10, sum: 10 });
}

/// Reads and writes in one transaction, again after a conflict, which stores with several writers
/// may answer.
async fn append_until_done<H: Harness>(world: &World<H>, a: &sequor_core::StreamId) {
    loop {
        let mut transaction = world.begin(a.tenant).await;
        let version = world.events_in(&mut transaction, a).await.len() as u64;
        let commit = command(a.tenant).on_stream(a.clone(), version).event().build();
        match transaction.write(commit, &world.counting()).await {
            Ok(()) => return drop(transaction.commit().await.unwrap()),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("neither done nor a conflict: {error:?}"),
        }
    }
}

/// A handler's own rows are committed with the rest.
pub(crate) async fn transaction_commits_the_rows_of_its_handler<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut transaction = world.begin(t).await;
    for amount in [30, -10] {
        world.harness.add(transaction.connection(), t, amount).await.unwrap();
    }
    world.write(&mut transaction, command(t).key("k").build()).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(world.tally(t).await, Tally { count: 2, sum: 20 });
}

/// A handler's own rows go with the transaction.
pub(crate) async fn transaction_rolls_back_the_rows_of_its_handler<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let mut transaction = world.begin(t).await;
    world.harness.add(transaction.connection(), t, 30).await.unwrap();
    transaction.commit().await.unwrap();
    let mut transaction = world.begin(t).await;
    world.harness.add(transaction.connection(), t, 5).await.unwrap();
    world.write(&mut transaction, command(t).on("a", 0).event().build()).await.unwrap();
    world.harness.add(transaction.connection(), t, 7).await.unwrap();
    drop(transaction);
    assert_eq!(world.tally(t).await, Tally { count: 1, sum: 30 });
}

/// After a refused write a transaction commits nothing, not even what went before.
pub(crate) async fn transaction_with_a_refused_write_commits_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("held", 0).hold(EMAIL, "x").build()).await;
    let refused = [
        command(t).on("b", 3).event().build(),
        command(t).on("b", 0).event().hold(EMAIL, "x").build(),
        command(t).on("b", 0).event().event_named(DOOMED).build(),
    ];
    for refused in refused {
        let mut transaction = world.begin(t).await;
        let good = command(t).key("k").on("a", 0).event().build();
        transaction.write(good, &world.counting()).await.unwrap();
        assert!(transaction.write(refused, &world.counting()).await.is_err());
        assert!(transaction.commit().await.is_err(), "it can only be dropped");
        assert_eq!(world.log(t).await, []);
        assert_eq!(world.record(t, "k").await, None);
        assert_eq!(world.tally(t).await, Tally::default());
    }
}

/// Versions and unique values are judged on top of what the transaction has written.
pub(crate) async fn transaction_judges_on_top_of_its_own_writes<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let first = || command(t).on("a", 0).events(2).hold(EMAIL, "x").build();
    let mut transaction = world.begin(t).await;
    world.write(&mut transaction, first()).await.unwrap();
    let stale = command(t).on("a", 0).event().build();
    let error = world.write(&mut transaction, stale).await.unwrap_err();
    assert_conflict(&error, &account(t, "a"), 0, 2);
    drop(transaction);
    let mut transaction = world.begin(t).await;
    world.write(&mut transaction, first()).await.unwrap();
    let clash = command(t).on("b", 0).event().hold(EMAIL, "x").build();
    let error = world.write(&mut transaction, clash).await.unwrap_err();
    assert_taken(&error, &account(t, "a"), EMAIL, "x");
}

/// A value passes through several hands within one transaction.
pub(crate) async fn transaction_passes_a_value_from_hand_to_hand<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("a", 0).hold(EMAIL, "x").build()).await;
    let mut transaction = world.begin(t).await;
    for [from, to] in [["a", "b"], ["b", "c"], ["c", "a"], ["a", "d"]] {
        let release = command(t).on(from, 0).release(EMAIL).build();
        world.write(&mut transaction, release).await.unwrap();
        let hold = command(t).on(to, 0).hold(EMAIL, "x").build();
        world.write(&mut transaction, hold).await.unwrap();
    }
    transaction.commit().await.unwrap();
    let error = world.refused(command(t).on("e", 0).hold(EMAIL, "x").build()).await;
    assert_taken(&error, &account(t, "d"), EMAIL, "x");
    world.fresh(command(t).on("a", 0).hold(EMAIL, "y").build()).await;
}

/// A handler that panics leaves nothing, and no lock.
pub(crate) async fn transaction_of_a_panicking_handler_writes_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let handler = tokio::spawn({
        let world = world.clone();
        async move {
            let mut transaction = world.begin(t).await;
            let commit = command(t).key("k").on("a", 0).event().build();
            transaction.write(commit, &world.counting()).await.unwrap();
            panic!("as ordered");
        }
    });
    assert!(handler.await.unwrap_err().is_panic());
    assert_eq!(world.tally(t).await, Tally::default());
    fresh(world.commit(command(t).key("k").on("a", 0).event().build()).await);
}

/// A handler whose task is ended leaves nothing, and no lock.
pub(crate) async fn transaction_of_a_cancelled_task_writes_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let (ready, is_ready) = oneshot::channel();
    let handler = tokio::spawn({
        let store = Arc::clone(&world.store);
        let world = world.clone();
        async move {
            let mut transaction = store.begin(tenant(1)).await.unwrap();
            let commit = command(t).key("k").on("a", 0).event().build();
            transaction.write(commit, &world.counting()).await.unwrap();
            ready.send(()).unwrap();
            std::future::pending::<()>().await;
            drop(transaction);
        }
    });
    is_ready.await.unwrap();
    handler.abort();
    assert!(handler.await.unwrap_err().is_cancelled());
    fresh(world.commit(command(t).key("k").on("a", 0).event().build()).await);
    assert_eq!(world.tally(t).await, Tally::default());
    assert_eq!(world.log(t).await.len(), 1);
}

/// A transaction in which nothing was done commits nothing.
pub(crate) async fn transaction_of_nothing_commits_nothing<H: Harness>(world: World<H>) {
    let transaction = world.begin(tenant(1)).await;
    assert_eq!(transaction.commit().await.unwrap(), []);
    assert_eq!(world.log(tenant(1)).await, []);
}

/// What belongs to another tenant is refused, whatever is asked, and nothing of it is done.
pub(crate) async fn transaction_speaks_for_one_tenant<H: Harness>(world: World<H>) {
    let (own, other) = (tenant(1), tenant(2));
    let key: IdempotencyKey = "k".parse().unwrap();
    let stream = account(other, "a");
    let differs = |error: StoreError| {
        assert!(matches!(error, StoreError::Invalid(Invalid::TenantsDiffer)), "{error:?}");
    };
    let mut transaction = world.begin(own).await;
    differs(transaction.claim(other, &key).await.unwrap_err());
    let foreign = Some((&stream, Version::NONE));
    let request = HistoryRequest { tenant: other, key: Some(&key), stream: foreign };
    differs(transaction.history(request).await.unwrap_err());
    assert_eq!(transaction.claim(own, &key).await.unwrap(), None);
    let mine = command(own).key("k").on("a", 0).event().build();
    world.write(&mut transaction, mine).await.unwrap();
    transaction.commit().await.unwrap();
    let mut transaction = world.begin(own).await;
    let foreign = command(other).key("k").on("a", 0).event().build();
    differs(world.write(&mut transaction, foreign).await.unwrap_err());
    drop(transaction);
    assert_eq!(world.record(other, "k").await, None);
    assert_eq!(world.version(&stream).await, 0);
    assert_eq!(world.version(&account(own, "a")).await, 1);
}
