//! What each promise costs on PostgreSQL: two ways to work, measured in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use sequor::postgres::PostgresStore;
use sequor::{CommandService, Meta, TenantId};
use sequor_testserver::{Cluster, Database};
use uuid::Uuid;

use super::super::domain::{Deposit, Keys, scatter, service, tenant};
use super::super::load::{Load, Work};
use super::super::report::{Report, median, rate, ratio, table};
use super::super::suite::ACCOUNTS;
use super::{ROUNDS, fresh, open, replay};

/// Callers of the rows that compare.
const CALLERS: usize = 32;
/// Keys that are stored before a row of the grown store.
const KEYS_GROWN: u64 = 5_000_000;

/// A row for each promise: the ratio of two rates.
pub(super) async fn run(report: &mut Report, cluster: &Cluster, duration: Duration) -> Result<()> {
    let load = Load { callers: CALLERS, duration };
    let mut rows = Vec::new();
    for (name, one, other) in [
        ("with a key, to without", Way::HOT, Way { keys: Keys::None, ..Way::HOT }),
        (
            "with command row, key and outbox row, to none of them",
            Way { outbox: Outbox::Written, ..Way::HOT },
            Way { keys: Keys::None, commands: Commands::Off, ..Way::HOT },
        ),
        ("one hot account, to 1,000", Way { accounts: 1, ..Way::HOT }, Way::HOT),
        ("flushed, to synchronous_commit = off", Way::HOT, Way { flushes: Flush::Not, ..Way::HOT }),
        (
            "10,000 tenants with an account each, to one with 10,000",
            Way { tenants: 10_000, accounts: 1, ..Way::HOT },
            Way { accounts: 10_000, ..Way::HOT },
        ),
        (
            "5,000,000 time-ordered keys stored, to none",
            Way { stored: Stored::TimeOrdered, ..Way::HOT },
            Way::HOT,
        ),
        (
            "5,000,000 random keys stored, to none; random keys",
            Way { stored: Stored::Random, keys: Keys::Random, ..Way::HOT },
            Way { keys: Keys::Random, ..Way::HOT },
        ),
        ("cold, to hot", Way { cached: 0, ..Way::HOT }, Way::HOT),
        ("three services at once, to one", Way { services: 3, ..Way::HOT }, Way::HOT),
        (
            "three services on accounts of their own, to one",
            Way { services: 3, sharing: Sharing::Not, ..Way::HOT },
            Way::HOT,
        ),
    ] {
        let (one_ground, other_ground) =
            (one.prepare(cluster).await?, other.prepare(cluster).await?);
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ones.push(one.measure(&one_ground, load).await?);
            others.push(other.measure(&other_ground, load).await?);
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

/// Whether the row of each command is written: it is, but for telling what it costs.
#[derive(Clone, Copy)]
enum Commands {
    Written,
    Off,
}

/// Whether each event leaves a message.
#[derive(Clone, Copy)]
enum Outbox {
    Off,
    Written,
}

/// Keys of other commands that are stored before.
#[derive(Clone, Copy)]
enum Stored {
    Nothing,
    TimeOrdered,
    Random,
}

/// Whether services that run beside each other meet on the same accounts.
#[derive(Clone, Copy)]
enum Sharing {
    Accounts,
    Not,
}

/// A way to work.
#[derive(Clone, Copy)]
struct Way {
    keys: Keys,
    accounts: u64,
    tenants: u64,
    cached: usize,
    stored: Stored,
    flushes: Flush,
    commands: Commands,
    outbox: Outbox,
    /// Each with a store and a cache of its own, as processes have.
    services: u64,
    sharing: Sharing,
}

impl Way {
    const HOT: Self = Self {
        keys: Keys::TimeOrdered,
        accounts: ACCOUNTS,
        tenants: 1,
        cached: 20_000,
        stored: Stored::Nothing,
        flushes: Flush::Each,
        commands: Commands::Written,
        outbox: Outbox::Off,
        services: 1,
        sharing: Sharing::Accounts,
    };

    /// A database to work on.
    async fn prepare(self, cluster: &Cluster) -> Result<Ground> {
        let database = fresh(cluster).await?;
        if let Flush::Not = self.flushes {
            let off = format!("ALTER DATABASE {} SET synchronous_commit = off", database.name());
            database.run(&off).await;
        }
        if let Commands::Off = self.commands {
            database.run(COMMANDS_OFF).await;
        }
        if let Outbox::Written = self.outbox {
            database.run(OUTBOX).await;
        }
        let key = match self.stored {
            Stored::Nothing => return Ok(Ground::of(database)),
            Stored::TimeOrdered => "'!' || lpad(n::text, 16, '0')",
            Stored::Random => "gen_random_uuid()::text",
        };
        let seed = SEED.replace("{count}", &KEYS_GROWN.to_string()).replace("{key}", key);
        database.run(&seed).await;
        Ok(Ground::of(database))
    }

    /// Commands per second, once every account is warm.
    async fn measure(self, ground: &Ground, load: Load) -> Result<f64> {
        if let Commands::Off = self.commands {
            // What was written without them cannot be loaded again.
            ground.database.run(EMPTY).await;
        }
        let mut services = Vec::new();
        for _ in 0..self.services {
            services.push(service(open(&ground.database).await?, self.cached)?);
        }
        let work = Arc::new(Spread { services: services.clone(), way: self });
        // Each account is met once, so that none is created or loaded while it counts.
        let accounts = self.tenants.max(self.accounts) * self.services;
        let warm = ground.numbers.load(Ordering::Relaxed) + accounts;
        while ground.numbers.load(Ordering::Relaxed) < warm {
            Load { duration: load.duration / 4, ..load }.drive(&work, &ground.numbers).await?;
        }
        let seen = load.drive(&work, &ground.numbers).await?;
        anyhow::ensure!(seen.errors == 0, "{} errors", seen.errors);
        for service in services {
            service.store().close().await;
        }
        Ok(seen.per_second)
    }
}

/// A database, and the numbers of the commands that it has seen.
struct Ground {
    database: Database,
    numbers: Arc<AtomicU64>,
}

impl Ground {
    fn of(database: Database) -> Self {
        Self { database, numbers: Arc::default() }
    }
}

/// Keys of commands long past.
const SEED: &str = "INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
    SELECT '018f2f6e-0000-7000-8000-000000000001', {key}, gen_random_uuid()
    FROM generate_series(1, {count}) AS n; ANALYZE sequor.idempotency_keys; CHECKPOINT";

/// From here on batches write no row of their commands, in this database.
const COMMANDS_OFF: &str = include_str!("commands_off.sql");

/// Begins anew.
const EMPTY: &str = "TRUNCATE sequor.streams, sequor.events";

/// A message for each event.
const OUTBOX: &str = include_str!("../../../../sequor-peers/src/peers/outbox.sql");

/// Deposits on accounts of several tenants, through each service in turn.
struct Spread {
    services: Vec<CommandService<PostgresStore>>,
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
        let (place, account) = match self.way.sharing {
            Sharing::Accounts => (scatter(number) % self.way.services, number % self.way.accounts),
            Sharing::Not => {
                let account = number % (self.way.accounts * self.way.services);
                (account % self.way.services, account)
            }
        };
        let deposit = Deposit { account, cents: 1 };
        let Some(service) = self.services.get(usize::try_from(place)?) else { return Ok(()) };
        service.execute(deposit, meta).await?;
        Ok(())
    }
}
