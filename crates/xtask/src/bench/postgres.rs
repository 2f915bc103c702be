//! PostgreSQL: commands, and what each promise costs, on a server of its own with fsync on.

mod prices;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use sequor::postgres::{PostgresSettings, PostgresStore, install};
use sequor_testserver::{Cluster, Database};
use sqlx::{Connection as _, PgConnection};

use super::domain::{Keys, service, tenant};
use super::load::{Load, Work};
use super::report::{Report, callers, median, rate, ratio, table};
use super::suite::{ACCOUNTS, Deposits, HEAD, Replays, commands};

/// How many times two things are measured in turn.
const ROUNDS: usize = 3;

/// Commands as on the other stores, then the prices.
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
    prices::run(report, &cluster, duration).await
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
    let name = format!("a replay, to a read of its key; {}", callers(load.callers));
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

pub(super) async fn fresh(cluster: &Cluster) -> Result<Database> {
    let database = Database::on(&cluster.url("postgres")).await;
    install(&PostgresSettings::new(database.owner())).await?;
    Ok(database)
}

pub(super) async fn open(database: &Database) -> Result<PostgresStore> {
    Ok(PostgresStore::open(PostgresSettings::new(database.owner())).await?)
}
