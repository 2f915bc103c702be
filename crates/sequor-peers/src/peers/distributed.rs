//! distributed: aggregates folded from their events at each command, one command at a time for each
//! by a lock in the process.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use distributed::{
    AggregateBuilder as _, AggregateRepository, Entity, PostgresRepository, Queueable as _,
    QueuedRepository, Repository, RepositoryError, SqliteRepository, sourced,
};
use sqlx_09::Pool;
use uuid::Uuid;

use super::{pool_09, sqlite_pool_09};
use crate::peer::{Accounts, Failure, Place, System};

#[derive(Default)]
struct Account {
    entity: Entity,
    cents: u64,
}

#[sourced(entity, aggregate_type = "account")]
impl Account {
    #[event("opened")]
    fn open(&mut self, id: String) {
        self.entity.set_id(&id);
    }

    #[event("deposited")]
    fn deposit(&mut self, cents: u64) {
        self.cents += cents;
    }
}

struct Bank<R, DB: sqlx_09::Database> {
    accounts: AggregateRepository<QueuedRepository<R>, Account>,
    pool: Pool<DB>,
}

impl<R: Repository, DB: sqlx_09::Database> Bank<R, DB> {
    /// A commit that fails leaves the account locked, so that its caller can look at it.
    async fn commit(&self, mut account: Account) -> Result<(), Failure> {
        let Err(error) = self.accounts.commit(&mut account).await else {
            return Ok(());
        };
        self.accounts.abort(&account).await?;
        if matches!(error, RepositoryError::ConcurrentWrite { .. }) {
            return Err(Failure::Conflict);
        }
        Err(error.into())
    }
}

fn opened(id: Uuid) -> Result<Account, Failure> {
    let mut account = Account::default();
    account.open(id.to_string())?;
    Ok(account)
}

/// On PostgreSQL.
pub(crate) struct OnPostgres;

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "distributed"
    }

    fn about(&self) -> &'static str {
        "distributed 4.12.3: queued repository (a lock in the process for each account), \
         8 connections; creates without loading"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = pool_09(&place.url).await?;
        PostgresRepository::new(pool.clone()).migrate().await?;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = pool_09(&place.url).await?;
        let accounts = PostgresRepository::new(pool.clone()).queued().aggregate::<Account>();
        Ok(Arc::new(Bank { accounts, pool }))
    }
}

/// On SQLite.
pub(crate) struct OnSqlite;

#[async_trait]
impl System for OnSqlite {
    fn name(&self) -> &'static str {
        "distributed"
    }

    fn about(&self) -> &'static str {
        "distributed 4.12.3: queued repository (a lock in the process for each account), \
         1 connection; creates without loading"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = sqlite_pool_09(place).await?;
        SqliteRepository::new(pool.clone()).migrate().await?;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = sqlite_pool_09(place).await?;
        let accounts = SqliteRepository::new(pool.clone()).queued().aggregate::<Account>();
        Ok(Arc::new(Bank { accounts, pool }))
    }
}

#[async_trait]
impl<R: Repository, DB: sqlx_09::Database> Accounts for Bank<R, DB> {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        self.commit(opened(account)?).await
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        let account = self.accounts.get(&account.to_string()).await?;
        let mut account = account.ok_or_else(|| anyhow::anyhow!("not open"))?;
        account.deposit(1)?;
        self.commit(account).await
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
