//! The servers on which everybody works: the same for all, and as new for each measurement.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sequor_testserver::{Cluster, Proxy};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use crate::peer::{Failure, Place, System, account};

/// Accounts that are there from the start.
pub(crate) const ACCOUNTS: u64 = 1_000;

/// Events of each of them.
const EVENTS_EACH: u64 = 10;

/// What flushes cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    /// What this machine's disk takes for a flush.
    Own,
    /// One millisecond longer.
    Slow,
}

/// What a round trip costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Nothing but the machine's own loopback.
    Direct,
    /// One millisecond longer.
    Slow,
}

/// A PostgreSQL server with one filled database for each system.
#[derive(Debug)]
pub(crate) struct Stage {
    // Dropped from top to bottom: the server goes before what it has loaded.
    proxy: Proxy,
    cluster: Cluster,
    _shim: Option<TempDir>,
}

impl Stage {
    /// Starts the server.
    pub(crate) fn start(disk: Disk) -> Result<Self> {
        let shim = match disk {
            Disk::Own => None,
            Disk::Slow => Some(compile_shim()?),
        };
        let mut builder = Cluster::builder()
            .durable()
            .setting("shared_buffers", "512MB")
            .setting("max_wal_size", "4GB")
            .setting("checkpoint_timeout", "30min");
        if let Some(folder) = &shim {
            let library = folder.path().join(SHIM).display().to_string();
            builder = builder.environment("LD_PRELOAD", &library);
        }
        let cluster = builder.start()?;
        let proxy = Proxy::start(&cluster.address())?;
        proxy.delay(Duration::from_millis(1));
        Ok(Self { proxy, cluster, _shim: shim })
    }

    /// The server itself.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Makes the database of a system: its tables, and the accounts with their events.
    pub(crate) async fn fill(&self, system: &dyn System) -> Result<()> {
        let name = template(system);
        self.run(&format!("CREATE DATABASE {name}")).await?;
        self.run(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).await?;
        let place = Place { url: self.cluster.url(&name) };
        system.install(&place).await?;
        fill(system, &place).await?;
        self.run(&format!("ALTER DATABASE {name} RESET synchronous_commit")).await?;
        let mut connection = PgConnection::connect(&place.url).await?;
        sqlx::raw_sql("VACUUM ANALYZE").execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Makes a copy of a system's database as it was filled, under a name of its own.
    pub(crate) async fn copy(&self, system: &dyn System, network: Network) -> Result<Place> {
        self.run(&format!("DROP DATABASE IF EXISTS {COPY} WITH (FORCE)")).await?;
        self.run(&format!("CREATE DATABASE {COPY} TEMPLATE {}", template(system))).await?;
        let url = match network {
            Network::Direct => self.cluster.url(COPY),
            Network::Slow => self.proxy.url(COPY),
        };
        Ok(Place { url })
    }

    async fn run(&self, sql: &str) -> Result<()> {
        let mut connection = PgConnection::connect(&self.cluster.url("postgres")).await?;
        let done = sqlx::raw_sql(sql).execute(&mut connection).await;
        done.with_context(|| sql.to_owned())?;
        Ok(connection.close().await?)
    }
}

const COPY: &str = "copy";
const SHIM: &str = "slow_fsync.so";

fn template(system: &dyn System) -> String {
    format!("filled_{}", system.name().replace('-', "_"))
}

/// Opens the accounts and pays into them, so that each has its events.
pub(crate) async fn fill(system: &dyn System, place: &Place) -> Result<()> {
    const TOGETHER: u64 = 32;
    let accounts = system.open(place).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..TOGETHER {
        let accounts = Arc::clone(&accounts);
        tasks.spawn(async move {
            for number in (first..ACCOUNTS).step_by(usize::try_from(TOGETHER)?) {
                accounts.create(account(number)).await.map_err(described)?;
                for _ in 1..EVENTS_EACH {
                    accounts.deposit(account(number)).await.map_err(described)?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done?.with_context(|| format!("filling the accounts of {}", system.name()))?;
    }
    accounts.close().await;
    Ok(())
}

fn described(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Conflict => anyhow::anyhow!("a conflict where nobody else is"),
        Failure::Other(error) => error,
    }
}

/// Compiles the library that makes flushes slow, where every user can read it.
fn compile_shim() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let source = folder.path().join("slow_fsync.c");
    std::fs::write(&source, include_str!("slow_fsync.c"))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.path().join(SHIM)).arg(&source);
    let status = gcc.arg("-ldl").status().context("cannot start gcc (is it installed?)")?;
    ensure!(status.success(), "gcc failed with {status}");
    Ok(folder)
}
