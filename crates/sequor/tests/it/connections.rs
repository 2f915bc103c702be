//! Nobody takes a second connection while a transaction is open: a pool of one is enough.

use sequor::{Batch, Place, async_trait};
use sequor::{Envelope, Error, Middleware, Next, Reply};

use crate::bank::{Account, Ask, Happened, bank, cents, deposit, key, keyed, meta, open, withdraw};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    a_handler_and_what_it_issues_need_one_connection,
    a_batch_needs_one_connection,
    behind_an_impure_chain_one_connection_is_enough_too,
);

/// Not pure, so that keys are looked up first.
struct Impure;

#[async_trait]
impl Middleware for Impure {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        next.run(envelope).await
    }
}

async fn exercise<H: Home>(store: &Watched<H>, pure: bool) {
    let handler = doing(|run: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            let account = repo.load::<Account>("a").await?;
            repo.emit(account, &Happened::Posted { cents: 1 })?;
            repo.issue(deposit("a", run.cents), Some(key("issued")))?;
            repo.issue(withdraw("missing", 1), None)?;
            Ok(7)
        })
    });
    let mut builder = bank(store).handler(handler);
    if !pure {
        builder = builder.middleware(Place::BeforeAuthz, Impure);
    }
    let bank = builder.build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(run(&[], 5), keyed("k")).await.unwrap_err();
    open(&bank, &["missing"]).await;
    bank.execute(deposit("missing", 2), meta()).await.unwrap();
    bank.execute(run(&[], 5), keyed("k")).await.unwrap();
    bank.execute(run(&[], 5), keyed("k2")).await.unwrap();
    bank.execute(run(&[], 5), keyed("k")).await.unwrap();
    assert_eq!(cents(&bank, "a").await, 7);
    assert_eq!(store.watch.second_connections(), 0);
}

async fn a_handler_and_what_it_issues_need_one_connection<H: Home>(store: Watched<H>) {
    exercise(&store, true).await;
}

async fn behind_an_impure_chain_one_connection_is_enough_too<H: Home>(store: Watched<H>) {
    exercise(&store, false).await;
}

async fn a_batch_needs_one_connection<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 5), keyed("known")).await.unwrap();
    let batch = || {
        Batch::new()
            .then(deposit("a", 5), keyed("known"))
            .then(deposit("a", 1), keyed("fresh"))
            .then(Ask::Open { account: "b".into() }, meta())
    };
    let rejected = batch().then(withdraw("a", 100), keyed("rejected"));
    bank.execute_all(rejected).await.unwrap_err();
    bank.execute_all(batch()).await.unwrap();
    let rejected = Batch::new().then(withdraw("a", 100), keyed("rejected"));
    bank.execute_all(rejected).await.unwrap_err();
    assert_eq!(store.watch.second_connections(), 0);
    assert_eq!(cents(&bank, "a").await, 6);
}
