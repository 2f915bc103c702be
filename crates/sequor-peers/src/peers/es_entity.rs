//! es-entity: entities folded from their events at each command, optimistic, with a row in a table
//! of their own.

#![expect(
    clippy::disallowed_methods,
    clippy::too_many_arguments,
    reason = "what its derives write for their users"
)]

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use es_entity::{
    EntityEvents, EntityEventsBuilder, EntityHydrationError, EsEntity, EsEvent, EsRepo, FromCaller,
    IntoEvents, TransientKind, TryFromEvents,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use super::pool;
use crate::peer::{Accounts, Failure, Place, System};

es_entity::entity_id! { AccountId }

#[derive(EsEvent, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[es_event(id = "AccountId")]
pub(crate) enum AccountEvent {
    Opened { id: AccountId },
    Deposited { cents: u64 },
}

#[derive(Debug)]
pub(crate) struct NewAccount {
    id: AccountId,
}

impl IntoEvents<AccountEvent> for NewAccount {
    type IdSource = FromCaller;

    fn into_events(
        self,
        builder: EntityEventsBuilder<AccountEvent, FromCaller>,
    ) -> EntityEvents<AccountEvent> {
        builder.initial_events(self.id, [AccountEvent::Opened { id: self.id }])
    }
}

#[derive(EsEntity)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    cents: u64,
    events: EntityEvents<AccountEvent>,
}

impl Account {
    fn deposit(&mut self, cents: u64) {
        self.cents += cents;
        self.events.push(AccountEvent::Deposited { cents });
    }
}

impl TryFromEvents<AccountEvent> for Account {
    fn try_from_events(events: EntityEvents<AccountEvent>) -> Result<Self, EntityHydrationError> {
        let mut hydrator = Self::hydrator();
        let mut total = 0;
        for event in events.iter_all() {
            match event {
                AccountEvent::Opened { id } => {
                    hydrator.id(*id);
                }
                AccountEvent::Deposited { cents } => total += cents,
            }
        }
        hydrator.cents(total);
        hydrator.build(events)
    }
}

#[derive(EsRepo)]
#[es_repo(entity = "Account", id(source = caller))]
pub(crate) struct Bank {
    pool: PgPool,
}

/// On PostgreSQL.
pub(crate) struct OnPostgres;

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "es-entity"
    }

    fn about(&self) -> &'static str {
        "es-entity 0.20.3: without snapshots, 8 connections; creates without loading"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        let pool = pool(&place.url).await?;
        sqlx::raw_sql(include_str!("es_entity.sql")).execute(&pool).await?;
        pool.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        Ok(Arc::new(Bank { pool: pool(&place.url).await? }))
    }
}

#[async_trait]
impl Accounts for Bank {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        let created = Bank::create(self, NewAccount { id: account.into() }).await;
        created.map(drop).map_err(|error| anyhow::anyhow!("{error}").into())
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        let account = self.find_by_id(AccountId::from(account)).await;
        let mut account = account.map_err(|error| anyhow::anyhow!("{error}"))?;
        account.deposit(1);
        match self.update(&mut account).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let transient = error.as_transient().map(|transient| transient.kind);
                if matches!(transient, Some(TransientKind::OptimisticConflict)) {
                    return Err(Failure::Conflict);
                }
                Err(anyhow::anyhow!("{error}").into())
            }
        }
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
