//! Unique values: taken, let go, swapped, whoever decides.

use sequor::ports::Store;
use sequor::{Aggregate, Error, Event, Repo, StoreError, Version};
use serde::{Deserialize, Serialize};

use crate::bank::{ADDRESS, Account, Ask, Bank, NUMBER, Refused, bank, keyed, mail, meta, open};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(
    a_taken_value_names_its_scope_itself_and_its_holder,
    a_value_that_was_let_go_is_free,
    a_new_value_lets_go_of_the_old_one,
    an_aggregate_that_ends_lets_go_of_everything,
    scopes_do_not_meet,
    a_handler_may_swap_two_values_in_either_order,
    a_handler_holds_releases_and_ends,
    a_conflict_wins_over_a_taken_value,
    a_value_that_is_none_is_invalid,
    a_taken_value_under_a_known_key_answers_with_the_replay,
    two_types_of_one_name_are_told_apart,
);

const ANN: &str = "ann@example.org";
const BOB: &str = "bob@example.org";

async fn take<H: Home>(bank: &Bank<H>, account: &str, address: &str) -> Result<(), Error<Refused>> {
    bank.execute(mail(account, address), meta()).await.map(drop)
}

async fn a_taken_value_names_its_scope_itself_and_its_holder<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    take(&bank, "a", ANN).await.unwrap();
    let taken = take(&bank, "b", ANN).await;
    let Err(Error::UniqueTaken { scope, value, holder }) = taken else { panic!("{taken:?}") };
    assert_eq!((scope.as_str(), value.as_str()), (ADDRESS, ANN));
    assert_eq!(holder.to_string(), "account/a");
    take(&bank, "a", ANN).await.unwrap();
}

async fn a_value_that_was_let_go_is_free<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    take(&bank, "a", ANN).await.unwrap();
    bank.execute(Ask::Unmail { account: "a".into() }, meta()).await.unwrap();
    take(&bank, "b", ANN).await.unwrap();
}

async fn a_new_value_lets_go_of_the_old_one<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    take(&bank, "a", ANN).await.unwrap();
    take(&bank, "a", BOB).await.unwrap();
    take(&bank, "b", ANN).await.unwrap();
}

async fn an_aggregate_that_ends_lets_go_of_everything<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    let number = |account: &str| Ask::Number { account: account.into(), number: "7".into() };
    take(&bank, "a", ANN).await.unwrap();
    bank.execute(number("a"), meta()).await.unwrap();
    bank.execute(Ask::Close { account: "a".into() }, meta()).await.unwrap();
    take(&bank, "b", ANN).await.unwrap();
    bank.execute(number("b"), meta()).await.unwrap();
}

async fn scopes_do_not_meet<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    take(&bank, "a", "7").await.unwrap();
    let number = Ask::Number { account: "b".into(), number: "7".into() };
    bank.execute(number, meta()).await.unwrap();
}

/// Swaps the addresses of two accounts.
async fn swap<S: Store>(run: &Run, repo: &mut Repo<S>) -> Result<i64, Error<Refused>> {
    let one = repo.load::<Account>(&run.accounts[0]).await?;
    let other = repo.load::<Account>(&run.accounts[1]).await?;
    let (first, second) = (repo.get(one).address.clone(), repo.get(other).address.clone());
    repo.hold(one, ADDRESS, &second.unwrap())?;
    repo.hold(other, ADDRESS, &first.unwrap())?;
    Ok(0)
}

async fn a_handler_may_swap_two_values_in_either_order<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> { Box::pin(swap(run, repo)) });
    let bank = bank(&store).handler(handler).build().unwrap();
    for (one, other) in [("a", "b"), ("z", "y")] {
        let (ann, bob) = (format!("{one}{ANN}"), format!("{other}{BOB}"));
        open(&bank, &[one, other]).await;
        take(&bank, one, &ann).await.unwrap();
        take(&bank, other, &bob).await.unwrap();
        bank.execute(run(&[one, other], 0), meta()).await.unwrap();
        for (account, address) in [(one, &ann), (other, &bob)] {
            let taken = take(&bank, account, address).await;
            assert!(matches!(taken, Err(Error::UniqueTaken { .. })), "{taken:?}");
        }
    }
}

async fn a_handler_holds_releases_and_ends<H: Home>(store: Watched<H>) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<Account>(&run.accounts[0]).await?;
            match run.cents {
                0 => repo.hold(account, ADDRESS, ANN)?,
                1 => repo.hold(account, NUMBER, "7")?,
                2 => repo.release(account, ADDRESS)?,
                _ => repo.release_all(account),
            }
            Ok(run.cents)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    for step in [0, 1] {
        bank.execute(run(&["a"], step), meta()).await.unwrap();
        let taken = bank.execute(run(&["b"], step), meta()).await;
        assert!(matches!(taken, Err(Error::UniqueTaken { .. })), "{taken:?}");
    }
    bank.execute(run(&["a"], 2), meta()).await.unwrap();
    bank.execute(run(&["b"], 0), meta()).await.unwrap();
    let taken = bank.execute(run(&["b"], 1), meta()).await;
    assert!(matches!(taken, Err(Error::UniqueTaken { .. })), "{taken:?}");
    bank.execute(run(&["a"], 3), meta()).await.unwrap();
    bank.execute(run(&["b"], 1), meta()).await.unwrap();
}

async fn a_conflict_wins_over_a_taken_value<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    take(&bank, "a", ANN).await.unwrap();
    let before = store.watch.calls(Door::Commit);
    store.watch.close_gate(Door::Commit);
    let takes = bank.clone();
    let taking = tokio::spawn(async move { take(&takes, "b", ANN).await });
    store.watch.at_gate(1).await;
    store.watch.open_gate();
    let taken = taking.await.unwrap();
    assert!(matches!(taken, Err(Error::UniqueTaken { .. })), "{taken:?}");
    assert_eq!(store.watch.calls(Door::Commit) - before, 1, "a taken value is not tried again");
    let stale = crate::bank::bank(&store).build().unwrap();
    stale.execute(mail("b", BOB), meta()).await.unwrap();
    bank.execute(mail("b", BOB), meta()).await.unwrap();
    take(&stale, "b", ANN).await.unwrap_err();
    let before = store.watch.calls(Door::Commit);
    take(&stale, "b", ANN).await.unwrap_err();
    assert_eq!(store.watch.calls(Door::Commit) - before, 1);
    let stream = sequor::StreamId {
        tenant: crate::bank::tenant(1),
        aggregate: sequor::Name::new("account").unwrap(),
        id: sequor::AggregateId::new("b").unwrap(),
    };
    let (expected, actual) = (Version::new(1), Version::new(2));
    store.watch.fail(Door::Commit, [StoreError::Conflict { stream, expected, actual }]);
    let before = store.watch.calls(Door::Commit);
    take(&stale, "b", ANN).await.unwrap_err();
    assert_eq!(store.watch.calls(Door::Commit) - before, 2, "a conflict is tried again first");
}

async fn a_value_that_is_none_is_invalid<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    for address in ["", "line\nfeed", &"x".repeat(256)] {
        let invalid = take(&bank, "a", address).await;
        assert!(matches!(invalid, Err(Error::Invalid(_))), "{address:?}: {invalid:?}");
    }
    take(&bank, "a", &"x".repeat(255)).await.unwrap();
}

async fn a_taken_value_under_a_known_key_answers_with_the_replay<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a", "b"]).await;
    bank.execute(mail("a", ANN), keyed("k")).await.unwrap();
    take(&bank, "a", BOB).await.unwrap();
    take(&bank, "b", ANN).await.unwrap();
    assert!(bank.execute(mail("a", ANN), keyed("k")).await.unwrap().is_replayed());
}

/// Another aggregate that calls itself `account`.
#[derive(Clone, Default)]
struct Impostor;

#[derive(Event, Serialize, Deserialize)]
struct Posed;

impl Aggregate for Impostor {
    const NAME: &str = "account";
    type Event = Posed;
    fn apply(&mut self, _: &Posed) {}
}

async fn two_types_of_one_name_are_told_apart<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.load::<Account>("a").await?;
            let impostor = repo.load::<Impostor>("a").await?;
            repo.emit(impostor, &Posed)?;
            Ok(0)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    let corrupt = bank.execute(run(&[], 0), meta()).await.unwrap_err();
    assert!(matches!(&corrupt, Error::Corrupt { .. }), "{corrupt:?}");
    assert!(corrupt.to_string().contains("`account`"), "{corrupt}");
}
