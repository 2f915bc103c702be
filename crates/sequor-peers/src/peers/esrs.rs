//! esrs: aggregates folded from their events at each command, optimistic.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use esrs::manager::AggregateManager;
use esrs::store::postgres::{PgStore, PgStoreBuilder, PgStoreError, UuidFormat};
use esrs::{Aggregate, AggregateState};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use super::{is_taken, pool};
use crate::peer::{Accounts, Failure, Place, System};

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Posted {
    Opened,
    Deposited { cents: u64 },
}

#[derive(Debug)]
enum Ask {
    Open,
    Deposit { cents: u64 },
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not possible")]
struct Refused(Ask);

struct Account;

impl Aggregate for Account {
    const NAME: &'static str = "account";
    type State = Option<u64>;
    type Command = Ask;
    type Event = Posted;
    type Error = Refused;

    fn handle_command(balance: &Option<u64>, ask: Ask) -> Result<Vec<Posted>, Refused> {
        match (&ask, balance) {
            (Ask::Open, None) => Ok(vec![Posted::Opened]),
            (Ask::Deposit { cents }, Some(_)) => Ok(vec![Posted::Deposited { cents: *cents }]),
            (Ask::Open, Some(_)) | (Ask::Deposit { .. }, None) => Err(Refused(ask)),
        }
    }

    fn apply_event(balance: Option<u64>, posted: Posted) -> Option<u64> {
        Some(match posted {
            Posted::Opened => 0,
            Posted::Deposited { cents } => balance.unwrap_or(0) + cents,
        })
    }
}

struct Bank {
    manager: AggregateManager<PgStore<Account>>,
    pool: PgPool,
}

impl Bank {
    async fn ask(&self, state: AggregateState<Option<u64>>, ask: Ask) -> Result<(), Failure> {
        match self.manager.handle_command(state, ask).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(refused)) => Err(refused.into()),
            Err(PgStoreError::Sqlx(error)) if is_taken(&error) => Err(Failure::Conflict),
            Err(error) => Err(error.into()),
        }
    }
}

/// On PostgreSQL.
pub(crate) struct OnPostgres;

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "esrs"
    }

    fn about(&self) -> &'static str {
        "esrs 0.18.0: optimistic, event ids UUIDv7, 8 connections; creates without loading"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = pool(&place.url).await?;
        PgStoreBuilder::<Account>::new(pool.clone()).try_build().await?;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let pool = pool(&place.url).await?;
        let store = PgStoreBuilder::<Account>::new(pool.clone())
            .with_event_id_format(UuidFormat::V7)
            .without_running_migrations()
            .try_build()
            .await?;
        Ok(Arc::new(Bank { manager: AggregateManager::new(store), pool }))
    }
}

#[async_trait]
impl Accounts for Bank {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        self.ask(AggregateState::with_id(account), Ask::Open).await
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        let state = self.manager.load(account).await?;
        self.ask(state.unwrap_or_default(), Ask::Deposit { cents: 1 }).await
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
