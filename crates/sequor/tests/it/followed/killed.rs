//! Writers with rollbacks, runners that are killed: each event once, those of a stream in order.

use std::collections::HashMap;
use std::marker::PhantomData;

use sequor::ports::Transact;
use sequor::projections::Runner;
use sequor::{Batch, Projection, ProjectionError, StoredEvent, async_trait};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{LONG, followed, run};
use crate::bank::{Bank, bank, deposit, log_of, meta, open, tenant, withdraw};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(each_event_is_taken_in_once_whoever_is_killed);

/// Adds a number that depends on the event, so that one too many or too few shows in the sum.
struct Digests<H>(PhantomData<fn() -> H>);

fn digest(event: &StoredEvent) -> i64 {
    i64::from(event.id().as_fields().0)
}

#[async_trait]
impl<H: Home> Projection<<H as Transact>::Connection> for Digests<H> {
    fn name(&self) -> &str {
        "digests"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut H::Connection,
    ) -> Result<(), ProjectionError> {
        H::add(connection, event.stream.tenant, digest(event)).await
    }
}

const WRITERS: usize = 8;

/// How many events each writer writes.
fn events_each() -> usize {
    if std::env::var("SEQUOR_SLOW").is_ok_and(|slow| slow == "1") { 10_000 } else { 150 }
}

async fn each_event_is_taken_in_once_whoever_is_killed<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let names: Vec<String> = (0..WRITERS).map(|n| format!("w{n}")).collect();
    open(&bank, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut writers = JoinSet::new();
    let written = watch::Sender::new(0);
    for name in names {
        writers.spawn(write(bank.clone(), name, written.clone()));
    }
    let killing = tokio::spawn(kill_and_restart(store.clone(), written.subscribe()));
    drop(written);
    writers.join_all().await;
    killing.await.unwrap();

    let log = log_of(&store, tenant(1)).await;
    assert_eq!(log.len(), WRITERS * (events_each() + 1));
    let mut versions = HashMap::new();
    for event in &log {
        let version: &mut u64 = versions.entry(&event.stream).or_default();
        *version += 1;
        assert_eq!(event.version.get(), *version);
    }
    let runner = run(&store, Digests::<H>(PhantomData));
    let last = bank.execute(deposit("w0", 1), meta()).await.unwrap();
    followed(&runner, "digests").wait_for(&last, LONG).await.unwrap();
    let all = log_of(&store, tenant(1)).await;
    assert_eq!(store.inner.sum(tenant(1)).await, all.iter().map(digest).sum::<i64>());
    runner.stop().await;
}

/// Writes to an account of its own, and now and then changes its mind.
async fn write<H: Home>(bank: Bank<H>, account: String, written: watch::Sender<u64>) {
    for n in 0..events_each() {
        if n % 7 == 3 {
            // What the first has written is rolled back with the second.
            let vain = Batch::new().then(deposit(&account, 1), meta());
            let vain = vain.then(withdraw(&account, i64::MAX), meta());
            bank.execute_all(vain).await.unwrap_err();
        }
        bank.execute(deposit(&account, 1), meta()).await.unwrap();
        written.send_modify(|written| *written += 1);
    }
}

/// Three runners, each killed in the midst of the writing and started anew, until it is over.
async fn kill_and_restart<H: Home>(store: Watched<H>, mut written: watch::Receiver<u64>) {
    let mut runners: Vec<Runner<Watched<H>>> = Vec::new();
    let mut next = 0;
    for round in 0_u64.. {
        if runners.len() == 3 {
            drop(runners.remove(usize::try_from(round % 3).unwrap_or(0)));
        }
        runners.push(run(&store, Digests::<H>(PhantomData)));
        next += 3 + round * 37 % 50;
        if written.wait_for(|written| *written >= next).await.is_err() {
            return;
        }
    }
}
