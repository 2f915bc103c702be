//! PostgreSQL: commands, and what each promise costs, on a server of its own with fsync on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use sequor::postgres::{PostgresSettings, PostgresStore, install};
use sequor::{CommandService, Meta, TenantId};
use sequor_testserver::{Cluster, Database};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::domain::{Deposit, Keys, service, tenant};
use super::load::{Load, Work};
use super::report::{Report, median, rate, ratio, table};
use super::suite::{ACCOUNTS, Deposits, HEAD, Replays, commands};

/// How many times two things are measured in turn.
const ROUNDS: usize = 3;
/// Callers of the rows that compare.
const CALLERS: usize = 32;
/// Keys that are stored before a row of the grown store.
const KEYS_GROWN: u64 = 1_000_000;

/// All rows.
pub(super) async fn run(report: &mut Report, duration: Duration) -> Result<()> {
    let cluster = Cluster::builder().durable().start()?;
    let mut rows = Vec::new();
    for callers in [1, 8, 32, 256] {
        let mut databases = Vec::new();
        let open = async || {
            let database = fresh(&cluster).await?;
            let store = open(&database).await?;
            databases.push(database);
            Ok(store)
        };
        rows.extend(commands(Load { callers, duration }, open).await?);
    }
    report.add(
        "PostgreSQL, fsync on",
        "Deposits on 1,000 accounts on a server of its own on the machine's disk; hot and cold as in \
         memory. Server and callers share the cores.",
        table(&HEAD, rows),
    );
    prices(report, &cluster, duration).await
}

/// What a promise costs: two ways in turn, as a ratio of their rates.
async fn prices(report: &mut Report, cluster: &Cluster, duration: Duration) -> Result<()> {
    let load = Load { callers: CALLERS, duration };
    let mut rows = Vec::new();
    for (name, one, other) in [
        ("with a key, to without", Way::HOT, Way { keys: Keys::None, ..Way::HOT }),
        ("one hot account, to 1,000", Way { accounts: 1, ..Way::HOT }, Way::HOT),
        ("flushed, to synchronous_commit = off", Way::HOT, Way { flushes: Flush::Not, ..Way::HOT }),
        (
            "10,000 tenants with an account each, to one with 10,000",
            Way { tenants: 10_000, accounts: 1, ..Way::HOT },
            Way { accounts: 10_000, ..Way::HOT },
        ),
        ("1,000,000 keys stored, to none", Way { stored: KEYS_GROWN, ..Way::HOT }, Way::HOT),
        ("cold, to hot", Way { cached: 0, ..Way::HOT }, Way::HOT),
    ] {
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ones.push(one.measure(cluster, load).await?);
            others.push(other.measure(cluster, load).await?);
        }
        let (one, other) = (median(ones), median(others));
        rows.push(vec![name.to_owned(), ratio(one, other), rate(one), rate(other)]);
    }
    for callers in [1, 8] {
        rows.push(replay(cluster, Load { callers, duration }).await?);
    }
    report.add(
        "PostgreSQL: what each promise costs",
        "Keyed deposits by 32 callers on 1,000 hot accounts of one tenant, and one thing changed: \
         rates as a ratio, medians of three alternating rounds. A replay is compared with a bare \
         prepared read of its key by as many callers.",
        table(&["what", "ratio", "commands /s", "to /s"], rows),
    );
    Ok(())
}

/// Whether commits wait for the disk.
#[derive(Clone, Copy)]
enum Flush {
    Each,
    Not,
}

/// A way to work.
#[derive(Clone, Copy)]
struct Way {
    keys: Keys,
    accounts: u64,
    tenants: u64,
    cached: usize,
    /// Keys of other commands that are stored before.
    stored: u64,
    flushes: Flush,
}

impl Way {
    const HOT: Self = Self {
        keys: Keys::TimeOrdered,
        accounts: ACCOUNTS,
        tenants: 1,
        cached: 20_000,
        stored: 0,
        flushes: Flush::Each,
    };

    /// Commands per second, once every account is warm.
    async fn measure(self, cluster: &Cluster, load: Load) -> Result<f64> {
        let database = fresh(cluster).await?;
        if let Flush::Not = self.flushes {
            let off = format!("ALTER DATABASE {} SET synchronous_commit = off", database.name());
            database.run(&off).await;
        }
        if self.stored > 0 {
            database.run(&SEED.replace("{count}", &self.stored.to_string())).await;
        }
        let service = service(open(&database).await?, self.cached)?;
        let work = Arc::new(Spread { service: service.clone(), way: self });
        let numbers = Arc::new(AtomicU64::new(0));
        // Each account is met once, so that none is created or loaded while it counts.
        while numbers.load(Ordering::Relaxed) < self.tenants.max(self.accounts) {
            Load { duration: load.duration / 4, ..load }.drive(&work, &numbers).await?;
        }
        let seen = load.drive(&work, &numbers).await?;
        anyhow::ensure!(seen.errors == 0, "{} errors", seen.errors);
        service.store().close().await;
        Ok(seen.per_second)
    }
}

/// Keys that sort by time, before those that are measured.
const SEED: &str = "INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
    SELECT '018f2f6e-0000-7000-8000-000000000001', '!' || lpad(n::text, 16, '0'), gen_random_uuid()
    FROM generate_series(1, {count}) AS n; ANALYZE sequor.idempotency_keys";

/// Deposits on accounts of several tenants.
struct Spread {
    service: CommandService<PostgresStore>,
    way: Way,
}

impl Work for Spread {
    async fn run(&self, number: u64) -> Result<()> {
        let first = tenant()?.as_uuid().as_u128();
        let tenant = first + u128::from(number % self.way.tenants);
        let meta = Meta {
            tenant: Some(TenantId::new(Uuid::from_u128(tenant))?),
            ..self.way.keys.meta(number)?
        };
        let deposit = Deposit { account: number % self.way.accounts, cents: 1 };
        self.service.execute(deposit, meta).await?;
        Ok(())
    }
}

/// A replay beside a bare read of its key.
async fn replay(cluster: &Cluster, load: Load) -> Result<Vec<String>> {
    let database = fresh(cluster).await?;
    let service = service(open(&database).await?, 20_000)?;
    let numbers = Arc::new(AtomicU64::new(0));
    let keys = Keys::TimeOrdered;
    let work = Arc::new(Deposits { service: service.clone(), keys, accounts: ACCOUNTS });
    Load { callers: 64, duration: Duration::from_secs(1) }.drive(&work, &numbers).await?;
    let stored = numbers.load(Ordering::Relaxed);
    let (mut replays, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let read = Arc::new(ReadKey::open(&database, load.callers, stored).await?);
        reads.push(load.drive(&read, &Arc::new(AtomicU64::new(0))).await?.per_second);
        let again = Arc::new(Replays { service: service.clone(), stored, accounts: ACCOUNTS });
        replays.push(load.drive(&again, &Arc::new(AtomicU64::new(0))).await?.per_second);
    }
    let (replays, reads) = (median(replays), median(reads));
    let name = format!("a replay, to a read of its key; {} callers", load.callers);
    Ok(vec![name, ratio(replays, reads), rate(replays), rate(reads)])
}

/// Bare reads of keys, each caller on a connection of its own.
struct ReadKey {
    connections: Vec<tokio::sync::Mutex<PgConnection>>,
    stored: u64,
}

impl ReadKey {
    async fn open(database: &Database, callers: usize, stored: u64) -> Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..callers {
            connections.push(PgConnection::connect_with(&database.owner()).await?.into());
        }
        Ok(Self { connections, stored })
    }
}

impl Work for ReadKey {
    async fn run(&self, number: u64) -> Result<()> {
        const READ: &str = "SELECT command_id FROM sequor.idempotency_keys
            WHERE tenant_id = $1 AND key = $2";
        let key = Keys::TimeOrdered.text(number % self.stored).unwrap_or_default();
        let place = usize::try_from(number)? % self.connections.len();
        let Some(connection) = self.connections.get(place) else { return Ok(()) };
        let read = sqlx::query(READ).bind(*tenant()?.as_uuid()).bind(key);
        let row = read.fetch_optional(&mut *connection.lock().await).await?;
        anyhow::ensure!(row.is_some(), "key {number} is not stored");
        Ok(())
    }
}

async fn fresh(cluster: &Cluster) -> Result<Database> {
    let database = Database::on(&cluster.url("postgres")).await;
    install(&PostgresSettings::new(database.owner())).await?;
    Ok(database)
}

async fn open(database: &Database) -> Result<PostgresStore> {
    Ok(PostgresStore::open(PostgresSettings::new(database.owner())).await?)
}
