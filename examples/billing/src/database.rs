//! Where the database lies, and the service over it.

mod postgres;
mod sqlite;

use std::fmt;
use std::str::FromStr;

use sequor::{CommandService, Projection, Store};
use sqlx::{PgConnection, SqliteConnection};

use crate::domain::{Account, Charge, Open, Refund};
use crate::projection::Balances;
use crate::story::{Begin, Story};

pub(crate) use postgres::Server;
pub(crate) use sqlite::File;

/// The service that this program is about, on one store or another.
pub(crate) type Bank<S> = CommandService<S>;

/// Where the database lies. Parsed once, at the command line.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    /// In a SQLite file.
    Sqlite(File),
    /// On a PostgreSQL server.
    Postgres(Box<Server>),
}

/// A connection that only reads; it works beside a running bus too.
pub(crate) enum Reader {
    /// Of a file.
    Sqlite(SqliteConnection),
    /// Of a server.
    Postgres(PgConnection),
}

impl Database {
    /// A connection for who only wants to read.
    pub(crate) async fn read(&self) -> anyhow::Result<Reader> {
        Ok(match self {
            Self::Sqlite(file) => Reader::Sqlite(file.read().await?),
            Self::Postgres(server) => Reader::Postgres(server.read().await?),
        })
    }

    /// What people call it.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "file",
            Self::Postgres(_) => "database",
        }
    }
}

/// Builds the service: the same on every store.
fn bank<S: Store>(store: S) -> anyhow::Result<Bank<S>>
where
    Balances: Projection<S::Connection>,
{
    let bank = CommandService::builder(store)
        .decider::<Account, Open>()
        .decider::<Account, Charge>()
        .decider::<Account, Refund>()
        .decider::<Story, Begin>()
        .projection(Balances)
        .build()?;
    Ok(bank)
}

impl FromStr for Database {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let is_address = url.get(scheme.len()..).is_some_and(|rest| rest.starts_with("://"));
        match scheme {
            "postgres" | "postgresql" => url.parse().map(Box::new).map(Self::Postgres),
            "sqlite" => url.parse().map(Self::Sqlite),
            _ if is_address => Err(format!(
                "`{scheme}://` is not supported; take a file, sqlite://file.db, or a server, \
                 postgres://user@host/database"
            )),
            _ => url.parse().map(Self::Sqlite),
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => file.fmt(f),
            Self::Postgres(server) => server.fmt(f),
        }
    }
}
