//! A database on a PostgreSQL server.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use sequor::postgres::{OpenError, PostgresSettings, PostgresStore, SettingsError, install};
use sqlx::{ConnectOptions, Connection, PgConnection};

use super::{Bank, bank};

const CREATE_BALANCES: &str = include_str!("../sql/postgres/create_balances.sql");
const FIND_BALANCES: &str = include_str!("../sql/postgres/find_balances.sql");

const NOT_INSTALLED: &str = "sequor's tables cannot be created; run `billing` once as a role that \
     may create schemas and roles";
const NOT_CREATED: &str = "the table `balances` cannot be created; run `billing` once as the owner \
     of sequor's tables";

/// Where the database lies, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Server(PostgresSettings);

impl Server {
    /// Opens the store and builds the service. Tables that are missing are created, so the role of
    /// the first run must be allowed to; that of later ones need not.
    pub(crate) async fn open(&self) -> anyhow::Result<Bank<PostgresStore>> {
        let store = match PostgresStore::open(self.0.clone()).await {
            Err(OpenError::NotInstalled { .. }) => self.install_and_open().await?,
            opened => opened.with_context(|| format!("{self} cannot be opened"))?,
        };
        if !self.has_balances().await? {
            let created = store.set_up(CREATE_BALANCES).await;
            created.context(NOT_CREATED)?;
        }
        bank(store)
    }

    async fn install_and_open(&self) -> anyhow::Result<PostgresStore> {
        let installed = install(&self.0).await;
        installed.context(NOT_INSTALLED)?;
        Ok(PostgresStore::open(self.0.clone()).await?)
    }

    pub(super) async fn read(&self) -> anyhow::Result<PgConnection> {
        self.expect_there().await?;
        self.connect().await
    }

    /// Refuses a database without this program's tables, for those who only want to read them.
    pub(crate) async fn expect_there(&self) -> anyhow::Result<()> {
        if self.has_balances().await? {
            return Ok(());
        }
        bail!(
            "{self} has no tables of `billing`; run `billing` first, or name another with --database"
        )
    }

    async fn has_balances(&self) -> anyhow::Result<bool> {
        let mut connection = self.connect().await?;
        let found = sqlx::query_scalar(FIND_BALANCES).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(found)
    }

    /// A connection that only reads.
    async fn connect(&self) -> anyhow::Result<PgConnection> {
        let options = self.0.server.clone().application_name("billing");
        let options = options.options([("default_transaction_read_only", "on")]);
        options.connect().await.with_context(|| format!("{self} cannot be opened"))
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        url.parse().map(Self).map_err(|error: SettingsError| error.to_string())
    }
}

/// Without the role and its password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.0.server;
        let database = server.get_database().unwrap_or_else(|| server.get_username());
        write!(f, "postgres://{}:{}/{database}", server.get_host(), server.get_port())
    }
}
