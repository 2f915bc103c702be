//! Two services over one store, as two processes are: what one has cached, the other changes.

use sequor::{Error, Mode, Options};

use crate::bank::{Refused, bank, cents, deposit, keyed, meta, open, withdraw};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    a_rejection_is_said_on_what_is_stored_and_not_on_what_was_cached,
    a_decision_on_a_cached_state_that_is_behind_is_made_again,
    a_key_is_known_to_the_neighbour,
    an_answer_without_events_is_not_given_from_a_state_that_is_behind,
    a_rejection_on_a_fresh_load_needs_no_second_one,
    without_a_cache_all_is_well_too,
);

async fn a_rejection_is_said_on_what_is_stored_and_not_on_what_was_cached<H: Home>(
    store: Watched<H>,
) {
    let (one, other) = (bank(&store).build().unwrap(), bank(&store).build().unwrap());
    open(&one, &["a"]).await;
    one.execute(deposit("a", 10), meta()).await.unwrap();
    other.execute(deposit("a", 90), meta()).await.unwrap();
    one.execute(withdraw("a", 100), meta()).await.unwrap();
    other.execute(deposit("a", 10), meta()).await.unwrap();
    one.execute(withdraw("a", 10), keyed("k")).await.unwrap();
    let rejected = other.execute(withdraw("a", 1), keyed("k2")).await;
    assert!(matches!(rejected, Err(Error::Rejected(Refused::Overdrawn))), "{rejected:?}");
}

async fn a_decision_on_a_cached_state_that_is_behind_is_made_again<H: Home>(store: Watched<H>) {
    let (one, other) = (bank(&store).build().unwrap(), bank(&store).build().unwrap());
    open(&one, &["a"]).await;
    for cents in 1..=10 {
        one.execute(deposit("a", cents), meta()).await.unwrap();
        other.execute(deposit("a", cents), meta()).await.unwrap();
    }
    one.execute(withdraw("a", 110), meta()).await.unwrap();
    let rejected = other.execute(withdraw("a", 110), meta()).await;
    assert!(matches!(rejected, Err(Error::Rejected(Refused::Overdrawn))), "{rejected:?}");
}

async fn a_key_is_known_to_the_neighbour<H: Home>(store: Watched<H>) {
    let (one, other) = (bank(&store).build().unwrap(), bank(&store).build().unwrap());
    open(&one, &["a"]).await;
    one.execute(deposit("a", 10), meta()).await.unwrap();
    other.execute(deposit("a", 10), meta()).await.unwrap();
    let first = one.execute(withdraw("a", 20), keyed("k")).await.unwrap();
    let output = Options::default().mode(Mode::Output);
    let again = other.execute_with(withdraw("a", 20), keyed("k"), output).await.unwrap();
    assert_eq!((again.command_id, again.output), (first.command_id, first.output));
}

async fn an_answer_without_events_is_not_given_from_a_state_that_is_behind<H: Home>(
    store: Watched<H>,
) {
    let (one, other) = (bank(&store).build().unwrap(), bank(&store).build().unwrap());
    open(&one, &["a"]).await;
    assert_eq!(cents(&one, "a").await, 0);
    other.execute(deposit("a", 10), meta()).await.unwrap();
    assert_eq!(cents(&one, "a").await, 10);
}

async fn a_rejection_on_a_fresh_load_needs_no_second_one<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let before = store.watch.calls(Door::History);
    bank.execute(withdraw("a", 1), meta()).await.unwrap_err();
    assert_eq!(store.watch.calls(Door::History) - before, 1);
}

async fn without_a_cache_all_is_well_too<H: Home>(store: Watched<H>) {
    let bank = bank(&store).aggregates_cached_max(0).build().unwrap();
    open(&bank, &["a"]).await;
    for round in 1..=5 {
        bank.execute(deposit("a", 10), meta()).await.unwrap();
        assert_eq!(cents(&bank, "a").await, 10 * round);
    }
    sequor_testkit::assert_once(&bank, deposit("a", 1), keyed("k"), 10).await;
    assert_eq!(cents(&bank, "a").await, 51);
}
