//! A SQLite file.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use sequor::sqlite::{OpenError, SettingsError, SqliteSettings, SqliteStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};

use super::{Bank, bank};

const CREATE_BALANCES: &str = include_str!("../sql/sqlite/create_balances.sql");

/// Where the file lies.
#[derive(Clone, Debug)]
pub(crate) struct File(SqliteSettings);

impl File {
    /// Opens the file, creates it with its tables where it is missing, and builds the service.
    pub(crate) async fn open(&self) -> anyhow::Result<Bank<SqliteStore>> {
        let store = self.open_store().await?;
        let created = store.set_up(CREATE_BALANCES).await;
        created.context("the table `balances` cannot be created")?;
        bank(store)
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

    pub(super) async fn read(&self) -> anyhow::Result<SqliteConnection> {
        self.expect_there()?;
        let options = SqliteConnectOptions::new()
            .filename(&self.0.path)
            .busy_timeout(self.0.writer_wait_max)
            .pragma("query_only", "ON");
        options.connect().await.with_context(|| format!("{self} cannot be opened"))
    }

    /// Refuses a file that is not there, for those who only want to read it.
    pub(crate) fn expect_there(&self) -> anyhow::Result<()> {
        if self.0.path.is_file() {
            return Ok(());
        }
        bail!("there is no file {self}; run `billing` first, or name another with --database")
    }
}

impl FromStr for File {
    type Err = String;

    fn from_str(address: &str) -> Result<Self, String> {
        address.parse().map(Self).map_err(|error: SettingsError| error.to_string())
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.path.display().fmt(f)
    }
}
