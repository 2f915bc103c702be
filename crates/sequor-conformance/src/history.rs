//! What is read is what was written, under one snapshot.

use std::sync::Arc;

use sequor_core::ports::{HistoryRequest, ReadHistory};
use sequor_core::{CommandMeta, EventName, IdempotencyKey, Version};

use crate::harness::Harness;
use crate::sample::{account, command, json, tenant};
use crate::world::{World, assert_without_holes};

/// What nobody has written is empty, and no error.
pub(crate) async fn history_of_an_absent_stream_is_empty<H: Harness>(world: World<H>) {
    let t = tenant(1);
    world.fresh(command(t).on("b", 0).event().build()).await;
    assert!(world.events(&account(t, "a")).await.is_empty());
    assert!(world.events_after(&account(t, "a"), 7).await.is_empty());
    assert_eq!(world.record(t, "k").await, None);
    let nothing = HistoryRequest { tenant: t, key: None, stream: None };
    let history = world.store.history(nothing).await.unwrap();
    assert!(history.record.is_none() && history.events.is_empty());
}

/// A cached state asks only for what came after it.
pub(crate) async fn history_starts_after_a_version<H: Harness>(world: World<H>) {
    let (t, a) = (tenant(1), account(tenant(1), "a"));
    world.fresh(command(t).on("a", 0).events(3).on("b", 0).events(9).build()).await;
    world.fresh(command(t).on("a", 3).events(2).build()).await;
    let all = world.events(&a).await;
    assert_eq!(all.len(), 5);
    for (after, events) in (0..=5).map(|after| (after as u64, &all[after..])) {
        assert_eq!(world.events_after(&a, after).await, events);
    }
    assert!(world.events_after(&a, 6).await.is_empty());
}

/// One question asks for a key and a stream, each known or not; a known key answers alone.
pub(crate) async fn history_answers_key_and_stream_at_once<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let record = world.fresh(command(t).key("k").on("a", 0).events(2).build()).await;
    for (key, stream, is_known, count) in
        [("k", "a", true, 0), ("k", "b", true, 0), ("x", "a", false, 2), ("x", "b", false, 0)]
    {
        let (key, stream): (IdempotencyKey, _) = (key.parse().unwrap(), account(t, stream));
        let request =
            HistoryRequest { tenant: t, key: Some(&key), stream: Some((&stream, Version::NONE)) };
        let history = world.store.history(request).await.unwrap();
        assert_eq!(history.record, is_known.then(|| record.clone()));
        assert_eq!(history.events.len(), count);
    }
}

/// Who asked, for whom, under which key, because of what, and when.
pub(crate) async fn history_keeps_every_part_of_meta<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let bare = command(t).on("a", 0).event();
    let full = command(t).key("k").actor("ada").caused_by(7, u128::MAX).at(1).on("a", 1).event();
    let (bare, full) = (bare.build(), full.build());
    world.fresh(bare.clone()).await;
    world.fresh(full.clone()).await;
    let stored = world.events(&account(t, "a")).await.into_iter();
    let stored: Vec<CommandMeta> = stored.map(|event| event.meta).collect();
    assert_eq!(stored, [bare.meta, full.meta]);
    assert_eq!(stored[0].actor, None);
    assert_eq!(stored[0].causation_id, None);
}

/// Times keep their microseconds, in the answer, the record and the event.
pub(crate) async fn history_keeps_microseconds<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let times = [
        1_767_225_599_999_999, // 2025-12-31T23:59:59.999999Z
        1_767_225_600_000_000,
        1_767_225_600_000_001,
        1_700_000_000_123_456,
        999_999,
        0,
        -1,
        -62_135_596_800_000_000, // 0001-01-01
        253_402_300_799_999_999, // 9999-12-31T23:59:59.999999Z
    ];
    for (n, micros) in times.into_iter().enumerate() {
        let (key, id) = (format!("k{n}"), format!("a{n}"));
        let commit = command(t).key(&key).at(micros).on(&id, 0).event().build();
        let record = world.fresh(commit.clone()).await;
        assert_eq!(record.recorded_at.as_micros(), micros);
        assert_eq!(world.record(t, &key).await.unwrap().recorded_at.as_micros(), micros);
        assert_eq!(world.known(commit).await.recorded_at.as_micros(), micros);
        let events = world.events(&account(t, &id)).await;
        assert_eq!(events[0].meta.time.as_micros(), micros);
    }
}

/// The names of events and the versions of their shapes.
pub(crate) async fn history_keeps_names_and_schema_versions<H: Harness>(world: World<H>) {
    let t = tenant(1);
    let names = [("a", 1), ("A", 2), ("a.b:c/d'e\"f", 40_000), ("a", u32::MAX >> 1)];
    let sample = names.iter().fold(command(t).on("a", 0), |sample, (name, schema_version)| {
        let name = EventName { name, schema_version: *schema_version };
        sample.event_with(name, &json("{}"))
    });
    world.fresh(sample.build()).await;
    let events = world.events(&account(t, "a")).await;
    let stored: Vec<_> = events.iter().map(|e| (e.name.as_str(), e.schema_version)).collect();
    assert_eq!(stored, names);
}

/// Whoever reads while others write sees each commit whole: its record with all its events.
pub(crate) async fn history_is_one_snapshot<H: Harness>(world: World<H>) {
    let (t, a) = (tenant(1), account(tenant(1), "a"));
    let writer = tokio::spawn({
        let world = world.clone();
        async move {
            for n in 0..50 {
                world
                    .fresh(command(t).key(&format!("k{n}")).on("a", n * 2).events(2).build())
                    .await;
            }
        }
    });
    let a = Arc::new(a);
    let mut last = 0;
    while last < 50 {
        let key: IdempotencyKey = format!("k{last}").parse().unwrap();
        let request =
            HistoryRequest { tenant: t, key: Some(&key), stream: Some((&a, Version::NONE)) };
        let history = world.store.history(request).await.unwrap();
        assert_without_holes(&a, 0, &history.events);
        let (found, events) = (history.record.is_some(), history.events.len() as u64);
        let before = if found { 0 } else { last * 2 };
        assert_eq!(events, before, "a record and its events come together");
        last += u64::from(found);
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

/// A state that a cache holds is brought up to date by what a store adds to it.
pub(crate) async fn history_read_in_parts_is_the_whole<H: Harness>(world: World<H>) {
    let (t, a) = (tenant(1), account(tenant(1), "a"));
    let mut parts = Vec::new();
    for n in 0..10_usize {
        let version = parts.len() as u64;
        world.fresh(command(t).on("a", version).events(n).build()).await;
        parts.extend(world.events_after(&a, version).await);
    }
    assert_eq!(parts.len(), 45);
    assert_eq!(parts, world.events(&a).await);
}
