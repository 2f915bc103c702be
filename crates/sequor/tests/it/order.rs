//! The order of the chain, and that a known key is answered as if it had been asked first.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sequor::ports::Denied;
use sequor::{Authorize, Envelope, Error, Invalid, Middleware, Next, Place, Reply, async_trait};

use crate::bank::{Bank, Refused, bank, cents, deposit, keyed, meta, open, withdraw};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    middleware_stands_in_the_documented_order,
    a_rejection_on_a_known_key_answers_with_the_replay,
    a_pure_denial_on_a_known_key_answers_with_the_replay,
    an_impure_denial_on_a_known_key_answers_with_the_replay,
    an_invalid_command_on_a_known_key_answers_with_the_replay,
    nothing_behind_idempotency_runs_on_a_replay,
    what_stands_before_idempotency_runs_on_a_replay_too,
    a_pure_chain_needs_no_trip_of_its_own_for_the_key,
    an_impure_chain_looks_the_key_up_first,
    denied_is_unauthorized_and_stores_nothing,
    filters_run_in_order_and_stop_the_command,
    a_middleware_may_answer_for_itself,
    behind_idempotency_the_key_and_the_tenant_stay_as_they_are,
);

/// Writes its name into a list, once before and once after the rest of the chain.
struct Station(&'static str, Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Middleware for Station {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        self.1.lock().unwrap().push(format!("+{}", self.0));
        let reply = next.run(envelope).await;
        self.1.lock().unwrap().push(format!("-{}", self.0));
        reply
    }
}

/// Allows until told otherwise, and counts how often it is asked.
struct Policy {
    denies: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    pure: bool,
}

impl Policy {
    fn new(pure: bool) -> Self {
        Self { denies: Arc::default(), asked: Arc::default(), pure }
    }
}

#[async_trait]
impl Authorize for Policy {
    async fn authorize(&self, _: &Envelope) -> Result<(), Denied> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.denies.load(Ordering::SeqCst) { Err(Denied::because("as told")) } else { Ok(()) }
    }

    fn is_pure(&self) -> bool {
        self.pure
    }
}

async fn middleware_stands_in_the_documented_order<H: Home>(store: Watched<H>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let places = [
        ("filters", Place::BeforeFilters),
        ("authz", Place::BeforeAuthz),
        ("tenancy", Place::BeforeTenancy),
        ("idempotency", Place::BeforeIdempotency),
        ("authz 2", Place::BeforeAuthz),
    ];
    let builder = places.into_iter().fold(bank(&store), |builder, (name, place)| {
        builder.middleware(place, Station(name, Arc::clone(&seen)))
    });
    let filtered = Arc::clone(&seen);
    let filter = move |_: &Envelope| -> Result<(), Invalid> {
        filtered.lock().unwrap().push("filter".into());
        Ok(())
    };
    let bank = builder.filter(filter).build().unwrap();
    bank.execute(crate::bank::Ask::Open { account: "a".into() }, keyed("k")).await.unwrap();
    let before = ["+tenancy", "+idempotency", "+authz", "+authz 2", "+filters"];
    let after = ["-filters", "-authz 2", "-authz", "-idempotency", "-tenancy"];
    let expected: Vec<_> = before.into_iter().chain(["filter"]).chain(after).collect();
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), expected);
    let again = crate::bank::Ask::Open { account: "a".into() };
    assert!(bank.execute(again, keyed("k")).await.unwrap().is_replayed());
    let expected = ["+tenancy", "+idempotency", "-idempotency", "-tenancy"];
    assert_eq!(*seen.lock().unwrap(), expected);
}

async fn a_rejection_on_a_known_key_answers_with_the_replay<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 20), meta()).await.unwrap();
    let first = bank.execute(withdraw("a", 20), keyed("k")).await.unwrap();
    let again = bank.execute(withdraw("a", 20), keyed("k")).await.unwrap();
    assert!(again.is_replayed());
    assert_eq!(again.command_id, first.command_id);
    let other = bank.execute(withdraw("a", 20), keyed("other")).await;
    assert!(matches!(other, Err(Error::Rejected(Refused::Overdrawn))), "{other:?}");
    let reused = bank.execute(withdraw("a", 21), keyed("k")).await;
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
}

async fn denied_later<H: Home>(store: &Watched<H>, pure: bool) {
    let policy = Policy::new(pure);
    let denies = Arc::clone(&policy.denies);
    let handler = doing(|_: &Run, _| -> Handling<'_, Run> { Box::pin(async { Ok(7) }) });
    let bank = bank(store).handler(handler).authorize(policy).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    bank.execute(run(&[], 1), keyed("run")).await.unwrap();
    denies.store(true, Ordering::SeqCst);
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().is_replayed());
    assert!(bank.execute(run(&[], 1), keyed("run")).await.unwrap().is_replayed());
    let reused = bank.execute(deposit("a", 21), keyed("k")).await;
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
    let fresh = bank.execute(deposit("a", 20), keyed("fresh")).await;
    assert!(matches!(fresh, Err(Error::Unauthorized { .. })), "{fresh:?}");
}

async fn a_pure_denial_on_a_known_key_answers_with_the_replay<H: Home>(store: Watched<H>) {
    denied_later(&store, true).await;
}

async fn an_impure_denial_on_a_known_key_answers_with_the_replay<H: Home>(store: Watched<H>) {
    denied_later(&store, false).await;
}

async fn an_invalid_command_on_a_known_key_answers_with_the_replay<H: Home>(store: Watched<H>) {
    let strict = Arc::new(AtomicBool::new(false));
    let refuses = Arc::clone(&strict);
    let filter = move |_: &Envelope| -> Result<(), Invalid> {
        if refuses.load(Ordering::SeqCst) { Err(Invalid::command("as told")) } else { Ok(()) }
    };
    let bank = bank(&store).filter(filter).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    strict.store(true, Ordering::SeqCst);
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().is_replayed());
    let fresh = bank.execute(deposit("a", 20), keyed("fresh")).await;
    assert!(matches!(fresh, Err(Error::Invalid(Invalid::Command { .. }))), "{fresh:?}");
}

async fn nothing_behind_idempotency_runs_on_a_replay<H: Home>(store: Watched<H>) {
    for place in [Place::BeforeAuthz, Place::BeforeFilters] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let policy = Policy::new(false);
        let asked = Arc::clone(&policy.asked);
        let station = Station("impure", Arc::clone(&seen));
        let bank = bank(&store).middleware(place, station).authorize(policy).build().unwrap();
        let account = format!("{place:?}");
        open(&bank, &[&account]).await;
        bank.execute(deposit(&account, 20), keyed(&account)).await.unwrap();
        let (ran, asked_before) = (seen.lock().unwrap().len(), asked.load(Ordering::SeqCst));
        let again = bank.execute(deposit(&account, 20), keyed(&account)).await.unwrap();
        assert!(again.is_replayed());
        assert_eq!(seen.lock().unwrap().len(), ran, "{place:?}");
        assert_eq!(asked.load(Ordering::SeqCst), asked_before);
    }
}

async fn what_stands_before_idempotency_runs_on_a_replay_too<H: Home>(store: Watched<H>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let station = Station("before", Arc::clone(&seen));
    let bank = bank(&store).middleware(Place::BeforeIdempotency, station).build().unwrap();
    open(&bank, &["a"]).await;
    for _ in 0..2 {
        bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    }
    assert_eq!(seen.lock().unwrap().len(), 6);
}

/// Trips that a first deposit and its replay need, once the account is cached.
async fn trips<H: Home>(store: &Watched<H>, bank: &Bank<H>) -> (usize, usize) {
    bank.execute(deposit("a", 1), meta()).await.unwrap();
    let count = || store.watch.calls(Door::History) + store.watch.calls(Door::Commit);
    let before = count();
    bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    let between = count();
    bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    (between - before, count() - between)
}

async fn a_pure_chain_needs_no_trip_of_its_own_for_the_key<H: Home>(store: Watched<H>) {
    let bank = bank(&store).authorize(Policy::new(true)).build().unwrap();
    open(&bank, &["a"]).await;
    assert_eq!(trips(&store, &bank).await, (1, 1));
}

async fn an_impure_chain_looks_the_key_up_first<H: Home>(store: Watched<H>) {
    let bank = bank(&store).authorize(Policy::new(false)).build().unwrap();
    open(&bank, &["a"]).await;
    assert_eq!(trips(&store, &bank).await, (2, 1));
}

async fn denied_is_unauthorized_and_stores_nothing<H: Home>(store: Watched<H>) {
    let policy = Policy::new(false);
    let denies = Arc::clone(&policy.denies);
    let bank = bank(&store).authorize(policy).build().unwrap();
    open(&bank, &["a"]).await;
    denies.store(true, Ordering::SeqCst);
    let denied = bank.execute(deposit("a", 20), keyed("k")).await;
    let Err(Error::Unauthorized { reason }) = denied else { panic!("{denied:?}") };
    assert_eq!(reason, "as told");
    denies.store(false, Ordering::SeqCst);
    assert_eq!(cents(&bank, "a").await, 0);
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().is_executed());
}

async fn filters_run_in_order_and_stop_the_command<H: Home>(store: Watched<H>) {
    let first = |envelope: &Envelope| match envelope.payload().as_str().contains("666") {
        true => Err(Invalid::command("first")),
        false => Ok(()),
    };
    let second = |envelope: &Envelope| match envelope.payload().as_str().contains('6') {
        true => Err(Invalid::command("second")),
        false => Ok(()),
    };
    let bank = bank(&store).filter(first).filter(second).build().unwrap();
    open(&bank, &["a"]).await;
    for (amount, by) in [(666, "first"), (16, "second")] {
        let error = bank.execute(deposit("a", amount), keyed("k")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("invalid: {by}"));
    }
    assert_eq!(cents(&bank, "a").await, 0);
}

/// Refuses what it likes, with a rejection of its own.
struct Curfew;

#[derive(Debug, thiserror::Error)]
#[error("closed at night")]
struct Night;

#[async_trait]
impl Middleware for Curfew {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        if envelope.payload().as_str().contains("13") {
            return Err(Error::Rejected(sequor::Rejection::new(Refused::Overdrawn)));
        }
        if envelope.payload().as_str().contains("14") {
            return Err(Error::Rejected(sequor::Rejection::new(Night)));
        }
        next.run(envelope).await
    }
}

async fn a_middleware_may_answer_for_itself<H: Home>(store: Watched<H>) {
    let bank = bank(&store).middleware(Place::BeforeFilters, Curfew).build().unwrap();
    open(&bank, &["a"]).await;
    let own = bank.execute(deposit("a", 13), keyed("k")).await;
    assert!(matches!(own, Err(Error::Rejected(Refused::Overdrawn))), "{own:?}");
    let foreign = bank.execute(deposit("a", 14), keyed("k")).await.unwrap_err();
    assert!(foreign.to_string().contains("closed at night"), "{foreign}");
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().is_executed());
}

/// Gives the command another key.
struct Rekey;

#[async_trait]
impl Middleware for Rekey {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        envelope.meta.key = Some("another".parse()?);
        next.run(envelope).await
    }
}

async fn behind_idempotency_the_key_and_the_tenant_stay_as_they_are<H: Home>(store: Watched<H>) {
    let late = bank(&store).middleware(Place::BeforeFilters, Rekey).build().unwrap();
    let refused = late.execute(deposit("a", 1), keyed("k")).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(Invalid::MetaChanged)), "{refused:?}");
    let plain = bank(&store).build().unwrap();
    open(&plain, &["a"]).await;
    let early = bank(&store).middleware(Place::BeforeIdempotency, Rekey).build().unwrap();
    early.execute(deposit("a", 1), keyed("k")).await.unwrap();
    let tenant = meta().tenant.unwrap();
    assert!(plain.outcome(tenant, &"another".parse().unwrap()).await.unwrap().is_some());
    assert!(plain.outcome(tenant, &"k".parse().unwrap()).await.unwrap().is_none());
}
