//! A PostgreSQL server of our own, with a fast disk or a slow one.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use sequor_testserver::{Cluster, Proxy};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use super::{Network, Stage, fill_accounts};
use crate::peer::{Place, System};

/// What flushes cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    /// What this machine's disk takes for a flush.
    Own,
    /// One millisecond longer.
    Slow,
}

/// A PostgreSQL server with one filled database for each system.
#[derive(Debug)]
pub(crate) struct PostgresStage {
    // Dropped from top to bottom: the server goes before what it has loaded.
    proxy: Proxy,
    cluster: Cluster,
    _shim: Option<TempDir>,
}

impl PostgresStage {
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

    async fn run(&self, sql: &str) -> Result<()> {
        let mut connection = PgConnection::connect(&self.cluster.url("postgres")).await?;
        let done = sqlx::raw_sql(sql).execute(&mut connection).await;
        done.with_context(|| sql.to_owned())?;
        Ok(connection.close().await?)
    }
}

#[async_trait(?Send)]
impl Stage for PostgresStage {
    async fn fill(&self, system: &dyn System) -> Result<()> {
        let name = template(system);
        self.run(&format!("CREATE DATABASE {name}")).await?;
        self.run(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).await?;
        let place = Place { url: self.cluster.url(&name), flushes: false };
        system.install(&place).await?;
        fill_accounts(system, &place).await?;
        self.run(&format!("ALTER DATABASE {name} RESET synchronous_commit")).await?;
        let mut connection = PgConnection::connect(&place.url).await?;
        sqlx::raw_sql("VACUUM ANALYZE").execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    async fn copy(&self, system: &dyn System, network: Network) -> Result<Place> {
        self.run(&format!("DROP DATABASE IF EXISTS {COPY} WITH (FORCE)")).await?;
        self.run(&format!("CREATE DATABASE {COPY} TEMPLATE {}", template(system))).await?;
        let url = match network {
            Network::Direct => self.cluster.url(COPY),
            Network::Slow => self.proxy.url(COPY),
        };
        Ok(Place { url, flushes: true })
    }

    fn server(&self) -> Result<Option<u32>> {
        let note = std::fs::read_to_string(self.cluster.folder().join("data/postmaster.pid"))?;
        Ok(Some(note.lines().next().unwrap_or_default().trim().parse()?))
    }
}

/// The database that is made anew for each measurement.
pub(crate) const COPY: &str = "copy";
const SHIM: &str = "slow_fsync.so";

fn template(system: &dyn System) -> String {
    format!("filled_{}", system.name().replace('-', "_"))
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
