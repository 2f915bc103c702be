//! Commands that a handler issues: after it, in its transaction, without its key.

use std::sync::{Arc, Mutex};

use sequor::ports::Denied;
use sequor::{Actor, Authorize, CorrelationId, Envelope, Error, Idempotency, Invalid, Meta, Mode};
use sequor::{Repo, async_trait};
use uuid::Uuid;

use crate::bank::{
    Account, Bank, Happened, Refused, bank, cents, deposit, key, keyed, log_of, meta,
};
use crate::bank::{open, tenant, withdraw};
use crate::doing::{Follow, Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    issued_commands_run_in_order_after_the_handler,
    a_failing_issued_command_rolls_everything_back_and_is_named,
    issuing_never_inherits_the_key,
    a_derived_key_makes_the_issued_command_run_once,
    the_key_of_the_parent_is_refused_for_an_issued_command,
    tenant_actor_correlation_and_causation_are_carried,
    issued_commands_pass_authz_and_filters,
    a_queue_that_does_not_end_is_refused,
    an_issued_handler_issues_further,
    a_known_key_of_an_issued_command_is_no_error_in_strict_mode,
);

/// Issues a deposit of each cent up to `cents` into the first account, or what the others say.
fn issuing<H: Home>(store: &Watched<H>) -> Bank<H> {
    let handler = doing(|run: &Run, repo: &mut Repo<Watched<H>>| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<Account>("a").await?;
            repo.emit(account, &Happened::Noted { text: "parent".into() })?;
            for cents in 1..=run.cents {
                repo.issue(deposit("a", cents), None)?;
            }
            for account in &run.accounts {
                repo.issue(withdraw(account, 1), None)?;
            }
            repo.emit(account, &Happened::Noted { text: "parent again".into() })?;
            Ok(repo.get(account).cents)
        })
    });
    bank(store).handler(handler).build().unwrap()
}

async fn issued_commands_run_in_order_after_the_handler<H: Home>(store: Watched<H>) {
    let bank = issuing(&store);
    open(&bank, &["a"]).await;
    let receipt = bank.execute(run(&[], 3), meta()).await.unwrap();
    assert_eq!(receipt.output, Some(0), "the handler was through before");
    let log = log_of(&store, tenant(1)).await;
    let payloads: Vec<_> = log.iter().skip(1).map(|event| event.payload.as_str()).collect();
    let expected = [
        r#"{"text":"parent"}"#,
        r#"{"text":"parent again"}"#,
        r#"{"cents":1}"#,
        r#"{"cents":2}"#,
        r#"{"cents":3}"#,
    ];
    assert_eq!(payloads, expected);
    assert_eq!(receipt.position, Some(log[2].position), "its own last event");
    assert_eq!(receipt.command_id, log[2].meta.command_id);
}

async fn a_failing_issued_command_rolls_everything_back_and_is_named<H: Home>(store: Watched<H>) {
    let bank = issuing(&store);
    open(&bank, &["a"]).await;
    let failed = bank.execute(run(&["missing"], 3), keyed("k")).await;
    let Err(Error::Issued { command_name, source }) = failed else { panic!("{failed:?}") };
    assert_eq!(command_name.as_str(), "account.withdraw");
    let Error::Rejected(rejection) = *source else { panic!("{source:?}") };
    assert_eq!(rejection.downcast_ref(), Some(&Refused::NotOpen));
    assert_eq!(cents(&bank, "a").await, 0);
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
    let log = log_of(&store, tenant(1)).await;
    assert_eq!(log.len(), 1);
    open(&bank, &["missing"]).await;
    bank.execute(deposit("missing", 1), meta()).await.unwrap();
    assert!(bank.execute(run(&["missing"], 3), keyed("k")).await.unwrap().is_executed());
}

async fn issuing_never_inherits_the_key<H: Home>(store: Watched<H>) {
    let bank = issuing(&store);
    open(&bank, &["a"]).await;
    bank.execute(run(&[], 2), keyed("k")).await.unwrap();
    let log = log_of(&store, tenant(1)).await;
    let keys: Vec<_> = log.iter().skip(1).map(|event| event.meta.key.is_some()).collect();
    assert_eq!(keys, [true, true, false, false]);
    assert!(bank.execute(run(&[], 2), keyed("k")).await.unwrap().is_replayed());
    assert_eq!(cents(&bank, "a").await, 3);
}

/// Issues one deposit under a key.
fn deriving<H: Home>(store: &Watched<H>, name: &'static str) -> Bank<H> {
    let handler = doing(move |_: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.issue(deposit("a", 5), Some(key(name)))?;
            Ok(7)
        })
    });
    bank(store).handler(handler).build().unwrap()
}

async fn a_derived_key_makes_the_issued_command_run_once<H: Home>(store: Watched<H>) {
    let bank = deriving(&store, "derived");
    open(&bank, &["a"]).await;
    for parent in ["one", "two", "three"] {
        assert!(bank.execute(run(&[], 1), keyed(parent)).await.unwrap().is_executed());
    }
    assert_eq!(cents(&bank, "a").await, 5);
    assert!(bank.execute(deposit("a", 5), keyed("derived")).await.unwrap().is_replayed());
}

async fn the_key_of_the_parent_is_refused_for_an_issued_command<H: Home>(store: Watched<H>) {
    let bank = deriving(&store, "k");
    open(&bank, &["a"]).await;
    let refused = bank.execute(run(&[], 1), keyed("k")).await;
    let Err(Error::Issued { source, .. }) = refused else { panic!("{refused:?}") };
    assert!(matches!(*source, Error::KeyReused { .. }), "{source:?}");
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
}

async fn tenant_actor_correlation_and_causation_are_carried<H: Home>(store: Watched<H>) {
    let bank = issuing(&store);
    let meta = |correlation| {
        let meta = Meta::new(tenant(2)).actor(Actor::new("ann").unwrap());
        Meta { correlation_id: correlation, causation_id: Some(Uuid::from_u128(9)), ..meta }
    };
    let story = CorrelationId(Uuid::from_u128(42));
    let ask = crate::bank::Ask::Open { account: "a".into() };
    bank.execute(ask, Meta::new(tenant(2))).await.unwrap();
    for correlation in [Some(story), None] {
        let receipt = bank.execute(run(&[], 1), meta(correlation)).await.unwrap();
        let log = log_of(&store, tenant(2)).await;
        let [.., parent, child] = &log[..] else { panic!("{log:#?}") };
        let own = CorrelationId(receipt.command_id.0);
        assert_eq!(parent.meta.command_id, receipt.command_id);
        assert_eq!(parent.meta.causation_id, Some(Uuid::from_u128(9)));
        assert_eq!(child.meta.causation_id, Some(receipt.command_id.0));
        assert_ne!(child.meta.command_id, receipt.command_id);
        for event in [parent, child] {
            assert_eq!(event.meta.correlation_id, correlation.unwrap_or(own));
            assert_eq!(event.meta.actor.as_ref().map(Actor::as_str), Some("ann"));
            assert_eq!(event.meta.tenant, tenant(2));
        }
    }
}

/// Notes which commands it is asked for, and denies deposits of 3.
struct Notes(Arc<Mutex<Vec<&'static str>>>);

#[async_trait]
impl Authorize for Notes {
    async fn authorize(&self, envelope: &Envelope) -> Result<(), Denied> {
        self.0.lock().unwrap().push(envelope.name());
        match envelope.payload().as_str().contains("\"cents\":3,\"sent") {
            true => Err(Denied::because("not three")),
            false => Ok(()),
        }
    }
}

async fn issued_commands_pass_authz_and_filters<H: Home>(store: Watched<H>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.issue(deposit("a", run.cents), None)?;
            Ok(7)
        })
    });
    let filter =
        |envelope: &Envelope| match envelope.payload().as_str().contains("\"cents\":4,\"sent") {
            true => Err(Invalid::command("not four")),
            false => Ok(()),
        };
    let policy = Notes(Arc::clone(&asked));
    let bank = bank(&store).handler(handler).authorize(policy).filter(filter).build().unwrap();
    open(&bank, &["a"]).await;
    asked.lock().unwrap().clear();
    bank.execute(run(&[], 2), meta()).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["bank.run", "account.deposit"]);
    let denied = bank.execute(run(&[], 3), meta()).await.unwrap_err();
    assert_eq!(denied.to_string(), "issued command `account.deposit`: unauthorized: not three");
    let invalid = bank.execute(run(&[], 4), meta()).await.unwrap_err();
    assert_eq!(invalid.to_string(), "issued command `account.deposit`: invalid: not four");
    assert_eq!(cents(&bank, "a").await, 2);
}

async fn a_queue_that_does_not_end_is_refused<H: Home>(store: Watched<H>) {
    let handler = doing(|follow: &Follow, repo| -> Handling<'_, Follow> {
        Box::pin(async move {
            repo.issue(Follow { number: follow.number + 1 }, None)?;
            Ok(())
        })
    });
    let bank = issuing(&store);
    open(&bank, &["a"]).await;
    let at_once = bank.execute(run(&[], 100), meta()).await;
    let refused = matches!(at_once, Err(Error::Invalid(Invalid::TooMany { what: "commands", .. })));
    assert!(refused, "{at_once:?}");
    bank.execute(run(&[], 99), meta()).await.unwrap();
    let endless = crate::bank::bank(&store).handler(handler).commands_max(20).build().unwrap();
    let refused = endless.execute(Follow { number: 1 }, keyed("k")).await;
    let Err(Error::Invalid(Invalid::TooMany { max, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!(max, 20);
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
}

async fn an_issued_handler_issues_further<H: Home>(store: Watched<H>) {
    let handler = doing(|follow: &Follow, repo: &mut Repo<Watched<H>>| -> Handling<'_, Follow> {
        Box::pin(async move {
            H::add(repo.connection()?, tenant(1), follow.number.into()).await.unwrap();
            let account = repo.load::<Account>("a").await?;
            repo.emit(account, &Happened::Posted { cents: 1 })?;
            if follow.number < 5 {
                repo.issue(Follow { number: follow.number + 1 }, None)?;
            }
            Ok(())
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(Follow { number: 1 }, keyed("k")).await.unwrap();
    assert_eq!(store.inner.sum(tenant(1)).await, 15);
    assert_eq!(cents(&bank, "a").await, 5);
}

async fn a_known_key_of_an_issued_command_is_no_error_in_strict_mode<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, repo: &mut Repo<Watched<H>>| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.issue(deposit("a", 1), Some(key("once")))?;
            Ok(0)
        })
    });
    let strict = Idempotency { mode: Mode::Strict, ..Idempotency::default() };
    let bank = bank(&store).handler(handler).idempotency(strict).build().unwrap();
    open(&bank, &["a"]).await;
    for _ in 0..2 {
        assert!(bank.execute(run(&[], 0), meta()).await.unwrap().is_executed());
    }
    assert_eq!(cents(&bank, "a").await, 1);
}
