//! The file: where it lies, and the service over it.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use sequor::CommandService;
use sequor::sqlite::{OpenError, SqliteSettings, SqliteStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};

use crate::domain::{Account, Charge, Open, Refund};
use crate::projection::{Balances, CREATE_BALANCES};
use crate::story::{Begin, Story};

/// The service that this program is about.
pub(crate) type Bank = CommandService<SqliteStore>;

/// Where the database lies. Parsed once, at the command line.
#[derive(Clone, Debug)]
pub(crate) struct Database(SqliteSettings);

impl Database {
    /// Opens the file, creates it with its tables where it is missing, and builds the service.
    pub(crate) async fn open(&self) -> anyhow::Result<Bank> {
        let store = self.open_store().await?;
        let created = store.set_up(CREATE_BALANCES).await;
        created.context("the table `balances` cannot be created")?;
        let bank = CommandService::builder(store)
            .decider::<Account, Open>()
            .decider::<Account, Charge>()
            .decider::<Account, Refund>()
            .decider::<Story, Begin>()
            .projection(Balances)
            .build()?;
        Ok(bank)
    }

    async fn open_store(&self) -> anyhow::Result<SqliteStore> {
        if self.0.path.is_dir() {
            bail!("{self} is a folder; name a file in it with --database");
        }
        let opened = SqliteStore::open(self.0.clone()).await;
        opened.map_err(|error| {
            let is_folder = matches!(error, OpenError::Unusable { .. });
            let error = anyhow::Error::new(error);
            let next = "make sure that the folder is there and can be written";
            if is_folder { error.context(next) } else { error }
        })
    }

    /// A connection that only reads; it works beside a running bus too.
    pub(crate) async fn read(&self) -> anyhow::Result<SqliteConnection> {
        self.expect_file()?;
        let options = SqliteConnectOptions::new()
            .filename(&self.0.path)
            .busy_timeout(self.0.writer_wait_max)
            .pragma("query_only", "ON");
        options.connect().await.with_context(|| format!("{self} cannot be opened"))
    }

    /// Refuses a file that is not there, for those who only want to read it.
    pub(crate) fn expect_file(&self) -> anyhow::Result<()> {
        if self.0.path.is_file() {
            return Ok(());
        }
        bail!("there is no file {self}; run `billing` first, or name another with --database")
    }
}

impl FromStr for Database {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let is_address = url.get(scheme.len()..).is_some_and(|rest| rest.starts_with("://"));
        match scheme {
            "sqlite" => {}
            "postgres" | "postgresql" => {
                return Err(
                    "PostgreSQL is not in this release; take a file: sqlite://file.db".into()
                );
            }
            _ if is_address => {
                return Err(format!(
                    "`{scheme}://` is not supported; take a file: sqlite://file.db"
                ));
            }
            _ => {}
        }
        url.parse().map(Self).map_err(|error: sequor::sqlite::SettingsError| error.to_string())
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.path.display().fmt(f)
    }
}
