//! Proof that a command takes effect once.

use std::sync::Arc;

use sequor_bus::{CommandService, Mode, Options};
use sequor_core::ports::Store;
use sequor_core::{Command, IdempotencyKey, Json, Meta, Receipt, TenantId};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::difference::check;
use crate::log;

/// Proves that a command takes effect once: runs it `times` times at once and `times` times one
/// after the other, all with the same key, and gives the receipt of the one that took effect.
///
/// Exactly one receipt must say `Executed`; all must name the same command, versions, position
/// and output; the record must agree, and the log must hold its events once.
///
/// Inside a multi-threaded runtime the commands meet on several threads.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/turnstile.rs"));
/// use sequor_bus::CommandService;
/// use sequor_core::Meta;
/// use sequor_memory::MemoryStore;
/// use sequor_testkit::assert_once;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service =
///     CommandService::builder(MemoryStore::new()).decider::<Turnstile, Ask>().build()?;
/// let meta = Meta::new("018f2f6e-0000-7000-8000-000000000001".parse()?).key("fare-1".parse()?);
/// let receipt = assert_once(&service, Ask::pay("north", 100), meta, 8).await;
/// assert!(receipt.is_executed());
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// When the command did not take effect once, when `meta` has no tenant or no key (nobody promises
/// anything then), and when the key was used before.
pub async fn assert_once<S: Store, C: Command + Clone>(
    service: &CommandService<S>,
    command: C,
    meta: Meta,
    times: usize,
) -> Receipt<C::Output> {
    let key = meta.key.clone().expect("give `meta` a key: without one nothing is done once");
    let tenant = meta.tenant.expect("give `meta` a tenant: a key means nothing without");
    assert!((1..=10_000).contains(&times), "take 1 to 10,000 times, not {times}");
    let mut receipts = at_once(service, &command, &meta, times).await;
    for _ in 0..times {
        receipts.push(run(service, command.clone(), meta.clone()).await);
    }
    let executed: Vec<usize> = receipts
        .iter()
        .enumerate()
        .filter(|(_, one)| one.is_executed())
        .map(|(at, _)| at)
        .collect();
    let [first] = executed[..] else { panic!("{}", not_once(executed.len(), &receipts)) };
    let receipt = receipts.swap_remove(first);
    for other in &receipts {
        check("receipts", &lines::<C>(&receipt), &lines::<C>(other));
    }
    check_record::<S, C>(service, tenant, &key, &receipt).await;
    check_log::<S, C>(service.store(), tenant, &key, &receipt).await;
    receipt
}

/// Runs a command several times, all starting together.
async fn at_once<S: Store, C: Command + Clone>(
    service: &CommandService<S>,
    command: &C,
    meta: &Meta,
    times: usize,
) -> Vec<Receipt<C::Output>> {
    let (start, mut running) = (Arc::new(Barrier::new(times)), JoinSet::new());
    for _ in 0..times {
        let (service, start) = (service.clone(), Arc::clone(&start));
        let (command, meta) = (command.clone(), meta.clone());
        running.spawn(async move {
            start.wait().await;
            run(&service, command, meta).await
        });
    }
    running.join_all().await
}

async fn run<S: Store, C: Command>(
    service: &CommandService<S>,
    command: C,
    meta: Meta,
) -> Receipt<C::Output> {
    let name = command.name();
    let answer = service.execute_with(command, meta, Options::default().mode(Mode::Output)).await;
    answer.unwrap_or_else(|error| panic!("`{name}` failed: {error}"))
}

fn not_once<O>(executed: usize, receipts: &[Receipt<O>]) -> String {
    let mut ids: Vec<String> = receipts.iter().map(|one| one.command_id.to_string()).collect();
    ids.dedup();
    let times = receipts.len();
    match executed {
        0 => format!("the key was used before, by command {ids:?}: take a fresh one"),
        _ => format!("{executed} of {times} executions took effect instead of one: {ids:#?}"),
    }
}

/// What all receipts of one command must have in common.
fn lines<C: Command>(receipt: &Receipt<C::Output>) -> Vec<String> {
    let output = receipt.output.as_ref().map(Json::of);
    let mut lines = vec![
        format!("command {} `{}`", receipt.command_id, receipt.command_name),
        format!("recorded at {}", receipt.recorded_at),
        format!("position {:?} of {:?}", receipt.position, receipt.epoch),
        format!("output {output:?}"),
    ];
    lines.extend(receipt.streams.iter().map(|one| format!("{} at {}", one.stream, one.version)));
    lines
}

/// The record under the key must say what the receipt says.
async fn check_record<S: Store, C: Command>(
    service: &CommandService<S>,
    tenant: TenantId,
    key: &IdempotencyKey,
    receipt: &Receipt<C::Output>,
) {
    let record = service.outcome(tenant, key).await;
    let record = record.unwrap_or_else(|error| panic!("the record cannot be read: {error}"));
    let record = record.unwrap_or_else(|| panic!("no record under the key `{key}`"));
    let recorded = (record.command_id, record.position, &record.streams);
    assert_eq!(recorded, (receipt.command_id, receipt.position, &receipt.streams), "the record");
}

/// The log must hold the command's events once, and no other command's under the key.
async fn check_log<S: Store, C: Command>(
    store: &S,
    tenant: TenantId,
    key: &IdempotencyKey,
    receipt: &Receipt<C::Output>,
) {
    let events = log::events(store, store.partition(tenant), |event| {
        event.meta.tenant == tenant && event.meta.key.as_ref() == Some(key)
    });
    let events = events.await;
    let id = receipt.command_id;
    let strangers = events.iter().find(|event| event.meta.command_id != id);
    assert!(strangers.is_none(), "under key `{key}` another command took effect: {strangers:#?}");
    let last = events.last().map(|event| event.position);
    assert_eq!(last, receipt.position, "the last event of command {id} in the log");
    let mut places: Vec<_> = events.iter().map(|event| (&event.stream, event.version)).collect();
    let count = places.len();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), count, "events of command {id} are in the log twice");
}
