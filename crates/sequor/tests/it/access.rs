//! Who may see that a command has been done, and what it answered.

use sequor::ports::Denied;
use sequor::{Actor, Authorize, Envelope, Error, Idempotency, Meta, Mode, Options, ReplayAccess};
use sequor::{async_trait, is_replay};

use crate::bank::{Bank, bank, deposit, keyed, open};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    the_same_actor_gets_the_output,
    another_actor_that_is_allowed_gets_a_receipt_without_output,
    another_actor_that_is_denied_gets_nothing_in_any_mode,
    anonymous_callers_count_as_one_actor_and_named_ones_as_others,
    reauthorize_asks_the_first_actor_too,
    trust_shows_the_output_to_whoever_has_the_key,
);

/// Denies whoever is called `eve`.
struct NotEve;

#[async_trait]
impl Authorize for NotEve {
    async fn authorize(&self, envelope: &Envelope) -> Result<(), Denied> {
        match envelope.meta.actor.as_ref().map(Actor::as_str) {
            Some("eve") => Err(Denied::because("not eve")),
            _ => Ok(()),
        }
    }
}

fn by(actor: &str) -> Meta {
    keyed("k").actor(Actor::new(actor).unwrap())
}

async fn first<H: Home>(store: &Watched<H>, access: ReplayAccess, meta: Meta) -> Bank<H> {
    let settings = Idempotency { mode: Mode::Output, access, ..Idempotency::default() };
    let bank = bank(store).idempotency(settings).authorize(NotEve).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 20), meta).await.unwrap();
    bank
}

async fn the_same_actor_gets_the_output<H: Home>(store: Watched<H>) {
    let bank = first(&store, ReplayAccess::SameActor, by("ann")).await;
    let again = bank.execute(deposit("a", 20), by("ann")).await.unwrap();
    assert_eq!(again.output.unwrap().cents, 20);
}

async fn another_actor_that_is_allowed_gets_a_receipt_without_output<H: Home>(store: Watched<H>) {
    let bank = first(&store, ReplayAccess::SameActor, by("ann")).await;
    let again = bank.execute(deposit("a", 20), by("bob")).await.unwrap();
    assert!(again.is_replayed());
    assert_eq!(again.output, None);
    let strict = Options::default().mode(Mode::Strict);
    let strict = bank.execute_with(deposit("a", 20), by("bob"), strict).await;
    assert!(is_replay(&strict.unwrap_err()));
}

async fn another_actor_that_is_denied_gets_nothing_in_any_mode<H: Home>(store: Watched<H>) {
    for access in [ReplayAccess::SameActor, ReplayAccess::Reauthorize] {
        let settings = Idempotency { access, ..Idempotency::default() };
        let bank = bank(&store).idempotency(settings).authorize(NotEve).build().unwrap();
        let account = format!("{access:?}");
        open(&bank, &[&account]).await;
        let meta = |actor| Meta { actor: Some(Actor::new(actor).unwrap()), ..keyed(&account) };
        bank.execute(deposit(&account, 20), meta("ann")).await.unwrap();
        for mode in [Mode::NoOp, Mode::Strict, Mode::Output] {
            for amount in [20, 21] {
                let options = Options::default().mode(mode);
                let eve = bank.execute_with(deposit(&account, amount), meta("eve"), options).await;
                assert!(matches!(eve, Err(Error::Unauthorized { .. })), "{mode:?}: {eve:?}");
            }
        }
    }
}

async fn anonymous_callers_count_as_one_actor_and_named_ones_as_others<H: Home>(store: Watched<H>) {
    let bank = first(&store, ReplayAccess::SameActor, keyed("k")).await;
    assert!(bank.execute(deposit("a", 20), keyed("k")).await.unwrap().output.is_some());
    assert!(bank.execute(deposit("a", 20), by("ann")).await.unwrap().output.is_none());
    let eve = bank.execute(deposit("a", 20), by("eve")).await;
    assert!(matches!(eve, Err(Error::Unauthorized { .. })), "{eve:?}");
}

/// Allows an actor once.
#[derive(Default)]
struct Once(std::sync::atomic::AtomicUsize);

#[async_trait]
impl Authorize for Once {
    async fn authorize(&self, envelope: &Envelope) -> Result<(), Denied> {
        let asked = self.0.fetch_add(
            usize::from(envelope.meta.key.is_some()),
            std::sync::atomic::Ordering::SeqCst,
        );
        if asked == 0 { Ok(()) } else { Err(Denied::because("not again")) }
    }
}

async fn reauthorize_asks_the_first_actor_too<H: Home>(store: Watched<H>) {
    let access = ReplayAccess::Reauthorize;
    let settings = Idempotency { mode: Mode::Output, access, ..Idempotency::default() };
    let bank = bank(&store).idempotency(settings).authorize(Once::default()).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 20), by("ann")).await.unwrap();
    let again = bank.execute(deposit("a", 20), by("ann")).await;
    assert!(matches!(again, Err(Error::Unauthorized { .. })), "{again:?}");
}

async fn trust_shows_the_output_to_whoever_has_the_key<H: Home>(store: Watched<H>) {
    let bank = first(&store, ReplayAccess::Trust, by("ann")).await;
    let eve = bank.execute(deposit("a", 20), by("eve")).await.unwrap();
    assert_eq!(eve.output.unwrap().cents, 20);
}
