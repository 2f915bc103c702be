//! evento: write models kept in the process's memory, brought up to date at each command.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use evento::metadata::Event;
use evento::migrator::{Migrate as _, Plan};
use evento::projection::{Projection, ProjectionAggregate as _};
use evento::{Executor, WriteError};
use sqlx_09::Pool;
use uuid::Uuid;

use super::{pool_09, sqlite_pool_09};
use crate::peer::{Accounts, Failure, Memory, Place, System};

#[evento::aggregate(name = "bank/account")]
pub(crate) enum Account {
    Opened { cents: u64 },
    Deposited { cents: u64 },
}

#[evento::projection(id = id)]
#[evento::snapshot(memory)]
pub(crate) struct Balance {
    pub(crate) id: String,
    pub(crate) cents: u64,
}

#[evento::handler]
async fn on_opened(event: Event<Opened>, row: &mut Balance) -> Result<()> {
    row.id = event.aggregate_id.clone();
    row.cents = event.data.cents;
    Ok(())
}

#[evento::handler]
async fn on_deposited(event: Event<Deposited>, row: &mut Balance) -> Result<()> {
    row.cents += event.data.cents;
    Ok(())
}

fn balance<E: Executor>() -> Projection<E, Balance> {
    Projection::new::<Account>().handler(on_opened()).handler(on_deposited()).strict()
}

struct Bank<E: Executor, DB: sqlx_09::Database> {
    executor: E,
    pool: Pool<DB>,
    memory: Memory,
}

/// Balances are remembered by the process.
fn forget_all() {
    if let Ok(mut rows) = Balance::snapshot_rows().write() {
        rows.clear();
    }
}

impl<E: Executor, DB: sqlx_09::Database> Bank<E, DB> {
    fn new(executor: E, pool: Pool<DB>, memory: Memory) -> Self {
        // Those of another database are none of ours.
        forget_all();
        Self { executor, pool, memory }
    }

    async fn open(&self, account: Uuid) -> Result<(), Failure> {
        let written = evento::append(account.to_string())
            .event(&Opened { cents: 0 })
            .commit(&self.executor)
            .await;
        judged(written)
    }

    async fn pay_in(&self, account: Uuid) -> Result<(), Failure> {
        if self.memory == Memory::Off {
            forget_all();
        }
        let balance = balance().load(account.to_string()).execute(&self.executor).await?;
        let balance = balance.ok_or_else(|| anyhow::anyhow!("not open"))?;
        judged(balance.write()?.event(&Deposited { cents: 1 }).commit(&self.executor).await)
    }
}

fn judged(written: Result<String, WriteError>) -> Result<(), Failure> {
    match written {
        Ok(_) => Ok(()),
        Err(WriteError::InvalidOriginalVersion) => Err(Failure::Conflict),
        Err(error) => Err(error.into()),
    }
}

/// On PostgreSQL.
pub(crate) struct OnPostgres(pub(crate) Memory);

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "evento"
    }

    fn cold(&self) -> Option<&'static dyn System> {
        Some(&Self(Memory::Off))
    }

    fn about(&self) -> &'static str {
        "evento 2.0.0-alpha.38: write models in memory, 8 connections; creates without loading"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = pool_09(&place.url).await?;
        let mut connection = pool.acquire().await?;
        let migrator = evento::sql_migrator::new::<sqlx_09::Postgres>()?;
        migrator.run(&mut *connection, &Plan::apply_all()).await?;
        drop(connection);
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = pool_09(&place.url).await?;
        Ok(Arc::new(Bank::new(evento::Postgres::from(pool.clone()), pool, self.0)))
    }
}

/// On SQLite.
pub(crate) struct OnSqlite(pub(crate) Memory);

#[async_trait]
impl System for OnSqlite {
    fn name(&self) -> &'static str {
        "evento"
    }

    fn cold(&self) -> Option<&'static dyn System> {
        Some(&Self(Memory::Off))
    }

    fn about(&self) -> &'static str {
        "evento 2.0.0-alpha.38: write models in memory, 1 connection; creates without loading"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = sqlite_pool_09(place).await?;
        let mut connection = pool.acquire().await?;
        let migrator = evento::sql_migrator::new::<sqlx_09::Sqlite>()?;
        migrator.run(&mut *connection, &Plan::apply_all()).await?;
        drop(connection);
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = sqlite_pool_09(place).await?;
        Ok(Arc::new(Bank::new(evento::Sqlite::from(pool.clone()), pool, self.0)))
    }
}

#[async_trait]
impl<E: Executor, DB: sqlx_09::Database> Accounts for Bank<E, DB> {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        self.open(account).await
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        self.pay_in(account).await
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
