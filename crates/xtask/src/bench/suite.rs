//! The rows of the tables.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sequor::CommandService;
use sequor::memory::MemoryStore;
use sequor::ports::Store;
use sequor::sqlite::SqliteStore;

use super::domain::{Deposit, Keys, service, tenant};
use super::load::{Figure, Load, Work};
use super::report::{Report, callers, median, micros, rate, ratio, table};
use super::{Arguments, Part, growth, peers, postgres, projections, raw, rivals};
use crate::workspace::Workspace;

pub(super) const HEAD: [&str; 6] = ["what", "callers", "commands /s", "p50 µs", "p99 µs", "errors"];
pub(super) const ACCOUNTS: u64 = 1_000;

/// Deposits on so many accounts.
pub(super) struct Deposits<S: Store> {
    pub(super) service: CommandService<S>,
    pub(super) keys: Keys,
    pub(super) accounts: u64,
}

impl<S: Store> Work for Deposits<S> {
    async fn run(&self, number: u64) -> Result<()> {
        let deposit = Deposit { account: number % self.accounts, cents: 1 };
        self.service.execute(deposit, self.keys.meta(number)?).await?;
        Ok(())
    }
}

/// The same deposits again, under keys that are known.
pub(super) struct Replays<S: Store> {
    pub(super) service: CommandService<S>,
    pub(super) stored: u64,
    pub(super) accounts: u64,
}

impl<S: Store> Work for Replays<S> {
    async fn run(&self, number: u64) -> Result<()> {
        let number = number % self.stored;
        let deposit = Deposit { account: number % self.accounts, cents: 1 };
        let receipt = self.service.execute(deposit, Keys::TimeOrdered.meta(number)?).await?;
        anyhow::ensure!(receipt.is_replayed(), "key {number} was not known");
        Ok(())
    }
}

/// Runs what was asked for, and prints and writes the tables.
pub(super) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let parts = arguments.parts()?;
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    let duration = Duration::from_secs_f64(arguments.seconds.unwrap_or(2.0));
    let mut report = Report::default();
    if wanted(Part::Memory) {
        let core = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        core.block_on(memory(&mut report, duration))?;
    }
    let cores = tokio::runtime::Runtime::new()?;
    if wanted(Part::Sqlite) {
        cores.block_on(sqlite(&mut report, duration))?;
        cores.block_on(limits(&mut report, duration))?;
    }
    if wanted(Part::Postgres) {
        cores.block_on(postgres::run(&mut report, duration))?;
    }
    if wanted(Part::Projections) {
        cores.block_on(projections::run(&mut report, duration))?;
    }
    if wanted(Part::Rivals) {
        rivals::run(&mut report, duration)?;
    }
    if wanted(Part::Replay) {
        cores.block_on(replay(&mut report, duration))?;
    }
    if wanted(Part::Growth) {
        cores.block_on(growth::run(&mut report, Load { callers: 32, duration }))?;
    }
    if arguments.write {
        let path = workspace.root().join("docs/BENCHMARKS.md");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let page = report.page("cargo xtask bench --write") + &peers::section(&before);
        std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

async fn memory(report: &mut Report, duration: Duration) -> Result<()> {
    let mut rows = Vec::new();
    for callers in [1, 8, 32] {
        let load = Load { callers, duration };
        rows.extend(commands(load, async || Ok(MemoryStore::new())).await?);
    }
    report.add(
        "Memory, on one core",
        "Deposits on 1,000 accounts; one thread runs callers and store. Hot: the account is in \
         the bus's cache. Cold: it is folded from its events each time.",
        table(&HEAD, rows),
    );
    Ok(())
}

async fn sqlite(report: &mut Report, duration: Duration) -> Result<()> {
    let mut rows = Vec::new();
    for callers in [1, 8, 32, 256] {
        let folder = tempfile::tempdir()?;
        let mut files = 0;
        let load = Load { callers, duration };
        let open = async || {
            files += 1;
            Ok(SqliteStore::open_path(folder.path().join(format!("{files}.db"))).await?)
        };
        rows.extend(commands(load, open).await?);
    }
    report.add(
        "SQLite, synchronous=FULL",
        "Deposits on 1,000 accounts in one file on disk; hot and cold as in memory.",
        table(&HEAD, rows),
    );
    Ok(())
}

/// The rows that every store has.
pub(super) async fn commands<S: Store>(
    load: Load,
    mut open: impl AsyncFnMut() -> Result<S>,
) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for (name, keys, cached) in [
        ("hot, unkeyed", Keys::None, 10_000),
        ("hot, keyed", Keys::TimeOrdered, 10_000),
        ("cold, keyed", Keys::TimeOrdered, 0),
    ] {
        let service = service(open().await?, cached)?;
        let numbers = Arc::new(AtomicU64::new(0));
        let work = Arc::new(Deposits { service: service.clone(), keys, accounts: ACCOUNTS });
        rows.push(row(name, load, load.drive(&work, &numbers).await?));
        if keys == Keys::TimeOrdered && cached > 0 {
            let stored = numbers.load(std::sync::atomic::Ordering::Relaxed);
            let replays = Arc::new(Replays { service, stored, accounts: ACCOUNTS });
            let again = load.drive(&replays, &Arc::new(AtomicU64::new(0))).await?;
            rows.push(row("hot, replay", load, again));
        }
    }
    for (name, events) in [("cold, 10 events a stream", 10), ("cold, 10,000 events", 10_000)] {
        rows.push(row(name, load, long_streams(load, service(open().await?, 0)?, events).await?));
    }
    Ok(rows)
}

/// Commands on streams that already have so many events, folded each time.
async fn long_streams<S: Store>(
    load: Load,
    service: CommandService<S>,
    events: u64,
) -> Result<Figure> {
    let accounts = if events > 100 { 4 } else { 100 };
    let numbers = Arc::new(AtomicU64::new(0));
    fill(&service, accounts, events).await?;
    let work = Arc::new(Deposits { service, keys: Keys::TimeOrdered, accounts });
    let load = Load { duration: load.duration / 2, ..load };
    load.drive(&work, &numbers).await
}

async fn fill<S: Store>(service: &CommandService<S>, accounts: u64, events: u64) -> Result<()> {
    const AT_ONCE: u64 = 1_000;
    for account in 0..accounts {
        for _ in 0..events.div_ceil(AT_ONCE) {
            let cents = events.min(AT_ONCE);
            let meta = sequor::Meta::new(tenant()?);
            service.execute(super::domain::Fill { account, events: cents }, meta).await?;
        }
    }
    Ok(())
}

fn row(name: &str, load: Load, seen: Figure) -> Vec<String> {
    vec![
        name.to_owned(),
        load.callers.to_string(),
        rate(seen.per_second),
        micros(seen.p50),
        micros(seen.p99),
        seen.errors.to_string(),
    ]
}

/// SQLite beside the same rows written bare: medians of three alternating rounds.
async fn limits(report: &mut Report, duration: Duration) -> Result<()> {
    const CALLERS: [usize; 4] = [1, 8, 32, 256];
    let (mut ones, mut fifties) = (Vec::new(), Vec::new());
    let mut ours = CALLERS.map(|_| Vec::new());
    for _ in 0..3 {
        ones.push(bare(1, duration).await?);
        fifties.push(bare(50, duration).await?);
        for (seen, callers) in ours.iter_mut().zip(CALLERS) {
            seen.push(hot(Load { callers, duration }).await?);
        }
    }
    let (one, fifty) = (median(ones), median(fifties));
    let mut rows: Vec<Vec<String>> = CALLERS
        .into_iter()
        .zip(ours.map(median))
        .map(|(count, ours)| {
            vec![
                format!("sequor, {}", callers(count)),
                ratio(ours, one),
                ratio(ours, fifty),
                rate(ours),
            ]
        })
        .collect();
    rows.push(vec![
        "bare loop, 1 per transaction".into(),
        ratio(one, one),
        ratio(one, fifty),
        rate(one),
    ]);
    rows.push(vec![
        "bare loop, 50 per transaction".into(),
        ratio(fifty, one),
        ratio(fifty, fifty),
        rate(fifty),
    ]);
    report.add(
        "SQLite beside the same rows written bare",
        "Keyed deposits on 1,000 hot accounts, synchronous=FULL, against a bare sqlx loop that \
         writes the same rows (command, event, version, key) statement by statement, one command \
         or fifty in a transaction. Medians of three alternating rounds.",
        table(&["what", "to 1 a transaction", "to 50 a transaction", "commands /s"], rows),
    );
    Ok(())
}

async fn bare(per_transaction: u64, duration: Duration) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bare.db");
    SqliteStore::open_path(&path).await?.close().await;
    raw::write(&path, per_transaction, duration).await
}

async fn hot(load: Load) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let service = service(SqliteStore::open_path(folder.path().join("hot.db")).await?, 10_000)?;
    let numbers = Arc::new(AtomicU64::new(0));
    let keys = Keys::TimeOrdered;
    let work = Arc::new(Deposits { service: service.clone(), keys, accounts: ACCOUNTS });
    Load { duration: load.duration / 4, ..load }.drive(&work, &numbers).await?;
    let seen = load.drive(&work, &numbers).await?;
    service.store().close().await;
    Ok(seen.per_second)
}

/// A replay beside a read of one key by its primary key.
async fn replay(report: &mut Report, duration: Duration) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("replay.db");
    let stored = stored_keys(&path).await?;
    let mut rows = Vec::new();
    for (name, cached) in [("hot", 10_000), ("cold", 0)] {
        let service = service(SqliteStore::open_path(&path).await?, cached)?;
        warm_up(&service, stored).await?;
        for callers in [1, 8] {
            let load = Load { callers, duration };
            let row = replay_row(&service, &path, (load, stored)).await?;
            rows.push([vec![name.to_owned(), callers.to_string()], row].concat());
        }
        service.store().close().await;
    }
    report.add(
        "A replay beside a primary-key read",
        "What a replay of a keyed deposit costs, in terms of a bare sqlx read of its key, by calls \
         per second and by the median latency. Hot: the account is in the bus's cache. Medians of \
         three alternating rounds.",
        table(&["account", "callers", "cost", "cost at p50", "reads /s", "replays /s"], rows),
    );
    Ok(())
}

/// Brings every account into the cache.
async fn warm_up(service: &CommandService<SqliteStore>, stored: u64) -> Result<()> {
    for account in 0..ACCOUNTS {
        let deposit = Deposit { account, cents: 1 };
        service.execute(deposit, Keys::None.meta(stored)?).await?;
    }
    Ok(())
}

async fn replay_row(
    service: &CommandService<SqliteStore>,
    path: &Path,
    (load, stored): (Load, u64),
) -> Result<Vec<String>> {
    let (mut reads, mut replays) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let numbers = Arc::new(AtomicU64::new(0));
        let read = Arc::new(raw::ReadKey::open(path, stored).await?);
        reads.push(load.drive(&read, &numbers).await?);
        let service = service.clone();
        let replay = Arc::new(Replays { service, stored, accounts: ACCOUNTS });
        replays.push(load.drive(&replay, &numbers).await?);
    }
    let rates = |seen: &[Figure]| median(seen.iter().map(|one| one.per_second).collect());
    let p50s = |seen: &[Figure]| median(seen.iter().map(|one| one.p50.as_secs_f64()).collect());
    Ok(vec![
        ratio(rates(&reads), rates(&replays)),
        ratio(p50s(&replays), p50s(&reads)),
        rate(rates(&reads)),
        rate(rates(&replays)),
    ])
}

/// Executes some deposits, so that there is something to replay.
async fn stored_keys(path: &Path) -> Result<u64> {
    let service = service(SqliteStore::open_path(path).await?, 10_000)?;
    let numbers = Arc::new(AtomicU64::new(0));
    let keys = Keys::TimeOrdered;
    let work = Arc::new(Deposits { service: service.clone(), keys, accounts: ACCOUNTS });
    let load = Load { callers: 64, duration: Duration::from_secs(1) };
    load.drive(&work, &numbers).await?;
    service.store().close().await;
    Ok(numbers.load(std::sync::atomic::Ordering::Relaxed))
}
