//! What cannot be stored or read is told in a type, writes nothing, and never panics.

use sequor::commit::{CommitDraft, StreamDraft};
use sequor::{AggregateId, CommandId, CommandMeta, CorrelationId, Error, EventName, Invalid, Json};
use sequor::{Limits, Name, Projections, StreamId, Timestamp, Version};
use uuid::Uuid;

use crate::bank::{
    Account, Ask, Bank, Rate, bank, deposit, key, keyed, log_of, meta, open, tenant,
};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    what_cannot_be_stored_is_invalid_and_writes_nothing,
    what_just_fits_is_stored_and_read_back,
    five_thousand_events_are_stored_and_read_back,
    stored_events_that_cannot_be_read_are_corrupt,
    large_numbers_are_exact,
    odd_ids_are_ids_or_invalid,
);

fn note(text: &str, times: usize) -> Ask {
    Ask::Note { account: "a".into(), text: text.into(), times }
}

async fn events<H: Home>(store: &Watched<H>) -> usize {
    log_of(store, tenant(1)).await.len()
}

async fn what_cannot_be_stored_is_invalid_and_writes_nothing<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let limit = Limits::DEFAULT.payload_bytes_max;
    let rate = |rate| Ask::Rate { account: "a".into(), rate };
    let too_large =
        |what: &str, bytes: usize| format!("the {what} takes {bytes} bytes, the limit is {limit}");
    let overhead = sequor::Command::encode(&note("", 1)).unwrap().as_str().len();
    let table = [
        (note(&"x".repeat(limit + 1 - overhead), 1), too_large("command", limit + 1)),
        (note("", 10_001), "10001 events in one command, the limit is 10000".into()),
        (note(&"x".repeat(100_000), 200), "the commit takes".into()),
        (note("nul \0", 1), "no portable JSON: text holds NUL (U+0000)".into()),
        (rate(Rate::NanEvent), "no portable JSON: NaN or an infinity".into()),
        (rate(Rate::NanOutput), "no portable JSON: NaN or an infinity".into()),
        (deposit("", 1), "the aggregate id is empty".into()),
        (deposit("line\nfeed", 1), "the aggregate id is empty".into()),
        (deposit(&"x".repeat(256), 1), "the aggregate id is empty".into()),
    ];
    for (ask, says) in table {
        for meta in [meta(), keyed("k")] {
            let invalid = bank.execute(ask.clone(), meta).await.unwrap_err();
            assert!(matches!(invalid, Error::Invalid(_)), "{invalid:?}");
            let said = invalid.to_string();
            assert!(said.starts_with(&format!("invalid: {says}")), "{said} instead of {says}");
        }
    }
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
    assert_eq!(events(&store).await, 1);
}

async fn what_just_fits_is_stored_and_read_back<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.load::<Account>("a").await?;
            Ok(run.cents)
        })
    });
    let bank = bank(&store).handler(handler).aggregates_cached_max(0).build().unwrap();
    open(&bank, &["a"]).await;
    let overhead = sequor::Command::encode(&note("", 1)).unwrap().as_str().len();
    let text = "x".repeat(Limits::DEFAULT.payload_bytes_max - overhead);
    bank.execute(note(&text, 1), keyed("k")).await.unwrap();
    assert!(bank.execute(note(&text, 1), keyed("k")).await.unwrap().is_replayed());
    let odd = "\u{1}\u{7f}\u{2028}\u{fffd}\\u0000 \"quoted\" 🦀";
    bank.execute(note(odd, 1), meta()).await.unwrap();
    bank.execute(run(&[], 7), meta()).await.unwrap();
    let log = log_of(&store, tenant(1)).await;
    assert_eq!(
        log[2].payload,
        Json::of(&std::collections::BTreeMap::from([("text", odd)])).unwrap()
    );
}

async fn five_thousand_events_are_stored_and_read_back<H: Home>(store: Watched<H>) {
    let bank = bank(&store).aggregates_cached_max(0).build().unwrap();
    open(&bank, &["a"]).await;
    let receipt = bank.execute(note("again", 5_000), keyed("k")).await.unwrap();
    assert_eq!(receipt.streams[0].version, Version::new(5_001));
    assert!(bank.execute(note("again", 5_000), keyed("k")).await.unwrap().is_replayed());
    assert_eq!(events(&store).await, 5_001);
    bank.execute(deposit("a", 1), meta()).await.unwrap();
}

/// Puts an event into the store that no build of this bank would write.
async fn plant<H: Home>(store: &Watched<H>, account: &str, name: EventName, payload: &str) {
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, account.as_bytes());
    let stream = StreamId {
        tenant: tenant(1),
        aggregate: Name::new("account").unwrap(),
        id: AggregateId::new(account).unwrap(),
    };
    let meta = CommandMeta {
        command_id: CommandId(id),
        tenant: tenant(1),
        key: None,
        actor: None,
        correlation_id: CorrelationId(id),
        causation_id: None,
        time: Timestamp::from_micros(1_767_225_600_000_000).unwrap(),
    };
    let draft = CommitDraft {
        meta,
        name: Name::new("account.planted").unwrap(),
        payload: Json::of(&()).unwrap(),
        fingerprint: None,
        output: Json::of(&()).unwrap(),
        streams: vec![StreamDraft {
            stream,
            expected: Version::NONE,
            after: None,
            unique: Vec::new(),
        }],
        events: vec![(0, name, Json::parse(payload).unwrap())],
    };
    let commit = draft.check(&Limits::DEFAULT).unwrap();
    store.inner.commit(commit, &Projections::none()).await.unwrap();
}

async fn is_corrupt<H: Home>(bank: &Bank<H>, account: &str, says: &str) {
    for meta in [meta(), keyed("k")] {
        let corrupt = bank.execute(deposit(account, 1), meta.clone()).await.unwrap_err();
        assert!(matches!(corrupt, Error::Corrupt { .. }), "{corrupt:?}");
        assert!(corrupt.to_string().contains(says), "{corrupt}");
        assert!(corrupt.to_string().contains(&format!("account/{account}")), "{corrupt}");
        let corrupt = bank.execute(run(&[account], 1), meta).await.unwrap_err();
        assert!(matches!(corrupt, Error::Corrupt { .. }), "{corrupt:?}");
    }
}

async fn stored_events_that_cannot_be_read_are_corrupt<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.load::<Account>(&run.accounts[0]).await?;
            Ok(run.cents)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    let named = |name, schema_version| EventName { name, schema_version };
    plant(&store, "renamed", named("account.forgotten", 1), "{}").await;
    plant(&store, "newer", named("account.posted", 2), r#"{"cents":1}"#).await;
    plant(&store, "damaged", named("account.posted", 1), r#"{"cents":"my secret"}"#).await;
    is_corrupt(&bank, "renamed", "`account.forgotten`").await;
    is_corrupt(&bank, "newer", "schema 2, this build knows schema 1").await;
    is_corrupt(&bank, "damaged", "`account.posted`").await;
    let damaged = bank.execute(deposit("damaged", 1), meta()).await.unwrap_err();
    assert!(!damaged.to_string().contains("secret"), "{damaged}");
    assert_eq!(events(&store).await, 3);
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
    open(&bank, &["sound"]).await;
}

async fn large_numbers_are_exact<H: Home>(store: Watched<H>) {
    let bank = bank(&store).aggregates_cached_max(0).build().unwrap();
    for (account, amount) in [("a", 9_007_199_254_740_993), ("b", i64::MAX), ("c", i64::MIN)] {
        open(&bank, &[account]).await;
        bank.execute(deposit(account, amount), meta()).await.unwrap();
        let looked = bank.execute(crate::bank::look(account), meta()).await.unwrap();
        let balance = looked.output.unwrap();
        assert_eq!((balance.cents, balance.large), (amount, u64::MAX));
        assert_eq!(balance.rate.to_bits(), (0.1_f64 + 0.2).to_bits());
    }
}

async fn odd_ids_are_ids_or_invalid<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    for id in [" ", "ß", "a/b", "%", "🦀", &"x".repeat(255), "A", "a", "'; DROP TABLE events"] {
        open(&bank, &[id]).await;
        bank.execute(deposit(id, 5), meta()).await.unwrap();
        assert_eq!(crate::bank::cents(&bank, id).await, 5, "{id:?}");
    }
    assert!(matches!(
        bank.execute(deposit(&"ß".repeat(128), 1), meta()).await,
        Err(Error::Invalid(Invalid::AggregateId))
    ));
}
