//! evento: write models kept in the process's memory, brought up to date at each command.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use evento::metadata::Event;
use evento::migrator::{Migrate as _, Plan};
use evento::projection::{Projection, ProjectionAggregate as _};
use evento::{Executor, WriteError};
use sqlx_09::PgPool;
use uuid::Uuid;

use super::pool_09;
use crate::peer::{Accounts, Failure, Place, System};

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

struct Bank<E: Executor, P> {
    executor: E,
    pool: P,
}

impl<E: Executor, P> Bank<E, P> {
    /// Balances are remembered by the process; those of another database are none of ours.
    fn new(executor: E, pool: P) -> Self {
        if let Ok(mut rows) = Balance::snapshot_rows().write() {
            rows.clear();
        }
        Self { executor, pool }
    }

    async fn open(&self, account: Uuid) -> Result<(), Failure> {
        let written = evento::append(account.to_string())
            .event(&Opened { cents: 0 })
            .commit(&self.executor)
            .await;
        judged(written)
    }

    async fn pay_in(&self, account: Uuid) -> Result<(), Failure> {
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
pub(crate) struct OnPostgres;

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "evento"
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
        Ok(Arc::new(Bank::new(evento::Postgres::from(pool.clone()), pool)))
    }
}

#[async_trait]
impl Accounts for Bank<evento::Postgres, PgPool> {
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
