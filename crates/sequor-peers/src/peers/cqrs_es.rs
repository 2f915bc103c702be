//! cqrs-es: aggregates folded from their events at each command, optimistic.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use cqrs_es::event_sink::EventSink;
use cqrs_es::persist::{PersistedEventRepository, PersistedEventStore};
use cqrs_es::{Aggregate, AggregateError, CqrsFramework, DomainEvent};
use postgres_es::postgres_cqrs;
use serde::{Deserialize, Serialize};
use sqlite_es::sqlite_cqrs;
use sqlx::Pool;
use uuid::Uuid;

use super::{pool, sqlite_pool};
use crate::peer::{Accounts, Failure, Place, System};

/// The one table that it asks for where there are no snapshots.
const TABLES: &str = "CREATE TABLE events (
    aggregate_type text NOT NULL, aggregate_id text NOT NULL, sequence bigint NOT NULL,
    event_type text NOT NULL, event_version text NOT NULL, payload json NOT NULL,
    metadata json NOT NULL, PRIMARY KEY (aggregate_type, aggregate_id, sequence)
)";

/// The same on SQLite.
const SQLITE_TABLES: &str = "CREATE TABLE events (
    aggregate_type text NOT NULL, aggregate_id text NOT NULL,
    sequence integer CHECK (sequence >= 0) NOT NULL, event_type text NOT NULL,
    event_version text NOT NULL, payload text NOT NULL, metadata text NOT NULL,
    PRIMARY KEY (aggregate_type, aggregate_id, sequence)
) STRICT";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Posted {
    Opened,
    Deposited { cents: u64 },
}

impl DomainEvent for Posted {
    fn event_type(&self) -> String {
        let name = match self {
            Self::Opened => "opened",
            Self::Deposited { .. } => "deposited",
        };
        name.to_owned()
    }

    fn event_version(&self) -> String {
        "1".to_owned()
    }
}

#[derive(Debug)]
enum Ask {
    Open,
    Deposit { cents: u64 },
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not possible")]
struct Refused(Ask);

#[derive(Default, Serialize, Deserialize)]
struct Account(Option<u64>);

impl Aggregate for Account {
    const TYPE: &'static str = "account";
    type Command = Ask;
    type Event = Posted;
    type Error = Refused;
    type Services = ();

    async fn handle(
        &mut self,
        ask: Ask,
        (): &(),
        sink: &EventSink<Self>,
    ) -> Result<(), Self::Error> {
        let posted = match (&ask, self.0) {
            (Ask::Open, None) => Posted::Opened,
            (Ask::Deposit { cents }, Some(_)) => Posted::Deposited { cents: *cents },
            (Ask::Open, Some(_)) | (Ask::Deposit { .. }, None) => return Err(Refused(ask)),
        };
        sink.write(posted, self).await;
        Ok(())
    }

    fn apply(&mut self, posted: Posted) {
        let before = self.0.unwrap_or(0);
        self.0 = Some(match posted {
            Posted::Opened => 0,
            Posted::Deposited { cents } => before + cents,
        });
    }
}

struct Bank<R: PersistedEventRepository, DB: sqlx::Database> {
    framework: CqrsFramework<Account, PersistedEventStore<R, Account>>,
    pool: Pool<DB>,
}

impl<R: PersistedEventRepository, DB: sqlx::Database> Bank<R, DB> {
    async fn ask(&self, account: Uuid, ask: Ask) -> Result<(), Failure> {
        let done = self.framework.execute(&account.to_string(), ask).await;
        done.map_err(|error| {
            if matches!(error, AggregateError::AggregateConflict) {
                return Failure::Conflict;
            }
            Failure::Other(error.into())
        })
    }
}

/// On PostgreSQL.
pub(crate) struct OnPostgres;

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "cqrs-es"
    }

    fn about(&self) -> &'static str {
        "cqrs-es 0.5.0 and postgres-es 0.5.0: event store without snapshots, 8 connections"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = pool(&place.url).await?;
        sqlx::raw_sql(TABLES).execute(&pool).await?;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = pool(&place.url).await?;
        Ok(Arc::new(Bank { framework: postgres_cqrs(pool.clone(), Vec::new(), ()), pool }))
    }
}

/// On SQLite.
pub(crate) struct OnSqlite;

#[async_trait]
impl System for OnSqlite {
    fn name(&self) -> &'static str {
        "cqrs-es"
    }

    fn about(&self) -> &'static str {
        "cqrs-es 0.5.0 and sqlite-es 0.5.0: event store without snapshots, 1 connection"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = sqlite_pool(place).await?;
        sqlx::raw_sql(SQLITE_TABLES).execute(&pool).await?;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = sqlite_pool(place).await?;
        Ok(Arc::new(Bank { framework: sqlite_cqrs(pool.clone(), Vec::new(), ()), pool }))
    }
}

#[async_trait]
impl<R: PersistedEventRepository, DB: sqlx::Database> Accounts for Bank<R, DB> {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        self.ask(account, Ask::Open).await
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        self.ask(account, Ask::Deposit { cents: 1 }).await
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
