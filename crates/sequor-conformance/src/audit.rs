//! A store that has done what it promises has nothing wrong with it, and the audit says so, also
//! while commands run.

use sequor_core::audit::AuditReport;
use sequor_core::ports::{Audit, Transaction};
use tokio::task::JoinSet;

use crate::harness::Harness;
use crate::sample::{EMAIL, NUMBER, command, tenant};
use crate::world::World;

impl<H: Harness> World<H> {
    /// What an audit finds.
    pub(crate) async fn audit(&self) -> AuditReport {
        self.store.audit(sequor_core::audit::AuditSettings::default()).await.unwrap()
    }

    /// Asserts that the audit finds nothing.
    pub(crate) async fn assert_clean(&self) {
        let report = self.audit().await;
        assert!(report.is_clean(), "the audit: {report}");
    }
}

/// An empty store holds nothing, and nothing is wrong with it.
pub(crate) async fn audit_of_an_empty_store_finds_nothing<H: Harness>(world: World<H>) {
    let report = world.audit().await;
    assert!(report.is_clean(), "{report}");
    let counts = report.counts;
    assert_eq!((counts.commands, counts.events, counts.streams, counts.keys), (0, 0, 0, 0));
}

/// What was written is counted, and what was not is not.
pub(crate) async fn audit_counts_what_is_there<H: Harness>(world: World<H>) {
    let (one, two) = (tenant(1), tenant(2));
    world.fresh(command(one).key("k").on("a", 0).events(2).on("b", 0).event().build()).await;
    world.fresh(command(two).key("k").on("a", 0).event().hold(EMAIL, "v").build()).await;
    world.fresh(command(one).key("nothing").on("a", 2).build()).await;
    world.fresh(command(one).on("a", 2).event().hold(EMAIL, "v").hold(NUMBER, "w").build()).await;
    world.known(command(one).key("k").on("a", 0).event().build()).await;
    world.refused(command(one).key("late").on("a", 0).event().build()).await;
    let mut transaction = world.begin(one).await;
    world
        .write(&mut transaction, command(one).key("vain").on("c", 0).event().build())
        .await
        .unwrap();
    drop(transaction);
    let report = world.audit().await;
    assert!(report.is_clean(), "{report}");
    let counts = report.counts;
    assert_eq!((counts.commands, counts.events, counts.streams), (4, 5, 3));
    assert_eq!((counts.keys, counts.unique_values), (3, 3));
    assert_eq!((counts.keys_archived, counts.keys_purged, counts.reservations), (0, 0, 0));
}

/// Commands without events, holders without events, values that are let go of: nothing is wrong.
pub(crate) async fn audit_of_every_kind_of_command_finds_nothing<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).build()).await;
    world.fresh(command(t).key("bare").build()).await;
    world.fresh(command(t).on("silent", 0).build()).await;
    world.fresh(command(t).on("holder", 0).hold(EMAIL, "early").build()).await;
    world.fresh(command(t).on("a", 0).events(3).hold(EMAIL, "u").build()).await;
    world.fresh(command(t).on("a", 3).hold(EMAIL, "v").on("b", 0).event().build()).await;
    world.fresh(command(t).on("a", 3).event().release_all().build()).await;
    let mut transaction = world.begin(t).await;
    let key = "claimed".parse().unwrap();
    assert_eq!(transaction.claim(t, &key).await.unwrap(), None);
    let first = command(t).key("claimed").on("b", 1).event().build();
    world.write(&mut transaction, first).await.unwrap();
    world.write(&mut transaction, command(t).on("b", 2).event().build()).await.unwrap();
    transaction.commit().await.unwrap();
    let mut transaction = world.begin(t).await;
    assert_eq!(transaction.claim(t, &"vain".parse().unwrap()).await.unwrap(), None);
    transaction.commit().await.unwrap();
    world.assert_clean().await;
}

/// The audit sees one moment: whatever is under way at it does not show.
pub(crate) async fn audit_while_commands_run_finds_nothing<H: Harness>(world: World<H>) {
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let world = world.clone();
        writers.spawn(async move { write_some(&world, writer).await });
    }
    let mut last = 0;
    while !writers.is_empty() {
        let report = world.audit().await;
        assert!(report.is_clean(), "while commands run: {report}");
        assert!(report.counts.events >= last, "what was there stays");
        last = report.counts.events;
        while let Some(written) = writers.try_join_next() {
            written.unwrap();
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(world.audit().await.counts.events, 4 * 20 * 3);
}

/// Every third time in a transaction of several commands, with another one that comes to nothing.
async fn write_some<H: Harness>(world: &World<H>, writer: u8) {
    let (t, id, other) = (tenant(1 + writer % 2), format!("w{writer}"), format!("x{writer}"));
    for n in 0..20 {
        let value = format!("{writer}-{}", n % 3);
        let both = command(t).key(&format!("{writer}-{n}")).on(&id, n * 2).events(2);
        let both = both.hold(EMAIL, &value).build();
        let single = command(t).on(&other, n).event().build();
        if n % 3 == 0 {
            let mut transaction = world.begin(t).await;
            world.write(&mut transaction, both).await.unwrap();
            world.write(&mut transaction, single).await.unwrap();
            transaction.commit().await.unwrap();
            let mut transaction = world.begin(t).await;
            let vain = command(t).on(&other, n + 1).event().build();
            world.write(&mut transaction, vain).await.unwrap();
        } else {
            world.fresh(both).await;
            world.fresh(single).await;
        }
    }
}
