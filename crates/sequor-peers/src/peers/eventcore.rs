//! eventcore: state folded from the streams of a command at each command, optimistic.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use eventcore::postgres::PostgresEventStore;
use eventcore::sqlite::{SqliteEventStore, rusqlite};
use eventcore::{
    Command, CommandError, CommandLogic, Event, NewEvents, RetryPolicy, StreamId, execute,
};
use eventcore_types::EventStore;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::pool;
use crate::peer::{Accounts, Failure, Place, System};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Posted {
    Opened { account: StreamId },
    Deposited { account: StreamId, cents: u64 },
}

impl Event for Posted {
    fn stream_id(&self) -> &StreamId {
        match self {
            Self::Opened { account } | Self::Deposited { account, .. } => account,
        }
    }

    fn event_type_name() -> &'static str {
        "posted"
    }
}

fn applied(balance: Option<u64>, posted: &Posted) -> Option<u64> {
    Some(match posted {
        Posted::Opened { .. } => 0,
        Posted::Deposited { cents, .. } => balance.unwrap_or(0) + cents,
    })
}

#[derive(Command)]
struct Open {
    #[stream]
    account: StreamId,
}

impl CommandLogic for Open {
    type Event = Posted;
    type State = Option<u64>;

    fn apply(&self, balance: Option<u64>, posted: &Posted) -> Option<u64> {
        applied(balance, posted)
    }

    fn handle(&self, balance: Option<u64>) -> Result<NewEvents<Posted>, CommandError> {
        match balance {
            None => Ok(vec![Posted::Opened { account: self.account.clone() }].into()),
            Some(_) => Err("open already".into()),
        }
    }
}

#[derive(Command)]
struct Deposit {
    #[stream]
    account: StreamId,
    cents: u64,
}

impl CommandLogic for Deposit {
    type Event = Posted;
    type State = Option<u64>;

    fn apply(&self, balance: Option<u64>, posted: &Posted) -> Option<u64> {
        applied(balance, posted)
    }

    fn handle(&self, balance: Option<u64>) -> Result<NewEvents<Posted>, CommandError> {
        let (account, cents) = (self.account.clone(), self.cents);
        match balance {
            Some(_) => Ok(vec![Posted::Deposited { account, cents }].into()),
            None => Err("not open".into()),
        }
    }
}

struct Bank<S> {
    store: S,
    /// On PostgreSQL; on SQLite the store has a connection of its own.
    pool: Option<sqlx::PgPool>,
}

impl<S: EventStore> Bank<S> {
    async fn open(&self, account: Uuid) -> Result<(), Failure> {
        let account = stream(account)?;
        judged(execute(&self.store, Open { account }, one_try()).await.map(drop))
    }

    async fn pay_in(&self, account: Uuid) -> Result<(), Failure> {
        let deposit = Deposit { account: stream(account)?, cents: 1 };
        judged(execute(&self.store, deposit, one_try()).await.map(drop))
    }
}

fn stream(account: Uuid) -> Result<StreamId> {
    Ok(StreamId::try_new(format!("account-{account}"))?)
}

/// Whoever calls tries again.
fn one_try() -> RetryPolicy {
    RetryPolicy::new().max_retries(0)
}

fn judged(done: Result<(), CommandError>) -> Result<(), Failure> {
    match done {
        Ok(()) => Ok(()),
        Err(CommandError::ConcurrencyError(_)) => Err(Failure::Conflict),
        Err(error) => Err(error.into()),
    }
}

/// On PostgreSQL.
pub(crate) struct OnPostgres;

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "eventcore"
    }

    fn about(&self) -> &'static str {
        "eventcore 2.1.0 and eventcore-postgres 2.1.0: 8 connections, its own retries off"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = pool(&place.url).await?;
        PostgresEventStore::from_pool(pool.clone()).migrate().await;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = pool(&place.url).await?;
        Ok(Arc::new(Bank { store: PostgresEventStore::from_pool(pool.clone()), pool: Some(pool) }))
    }
}

/// On SQLite.
pub(crate) struct OnSqlite;

fn connect(place: &Place) -> Result<SqliteEventStore> {
    let connection = rusqlite::Connection::open(&place.url)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", if place.flushes { "FULL" } else { "OFF" })?;
    Ok(SqliteEventStore::from_connection(connection))
}

#[async_trait]
impl System for OnSqlite {
    fn name(&self) -> &'static str {
        "eventcore"
    }

    fn about(&self) -> &'static str {
        "eventcore 2.1.0 and eventcore-sqlite 2.1.0: its one connection, its own retries off"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        Ok(connect(place)?.migrate().await?)
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        Ok(Arc::new(Bank { store: connect(place)?, pool: None }))
    }
}

#[async_trait]
impl<S: EventStore + Send> Accounts for Bank<S> {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        self.open(account).await
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        self.pay_in(account).await
    }

    async fn close(&self) {
        if let Some(pool) = &self.pool {
            pool.close().await;
        }
    }
}
