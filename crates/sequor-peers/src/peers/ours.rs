//! sequor, with its default settings and a key for each command.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use sequor::postgres::{PostgresStore, install};
use sequor::sqlite::{SqliteSettings, SqliteStore, Synchronous};
use sequor::{Aggregate, Command, CommandService, Decider, Decision, Event, Meta, TenantId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::pool;
use crate::peer::{Accounts, Failure, Memory, Place, System, new_id};

#[derive(Command, Serialize, Deserialize)]
#[command(id = account, rejection = Refused)]
enum Ask {
    #[command(creates)]
    Open {
        account: Uuid,
    },
    Deposit {
        account: Uuid,
        cents: u64,
    },
}

#[derive(Event, Serialize, Deserialize)]
enum Posted {
    Opened,
    Deposited { cents: u64 },
}

#[derive(Debug, thiserror::Error)]
#[error("{self:?}")]
enum Refused {
    Open,
    NotOpen,
}

#[derive(Clone, Default)]
struct Account(Option<u64>);

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = Posted;
    fn apply(&mut self, posted: &Posted) {
        let before = self.0.unwrap_or(0);
        self.0 = Some(match posted {
            Posted::Opened => 0,
            Posted::Deposited { cents } => before + cents,
        });
    }
}

impl Decider<Ask> for Account {
    fn decide(&self, ask: &Ask) -> Result<Decision<Posted>, Refused> {
        match (ask, self.0) {
            (Ask::Open { .. }, None) => Ok(Decision::event(Posted::Opened)),
            (Ask::Open { .. }, Some(_)) => Err(Refused::Open),
            (Ask::Deposit { .. }, None) => Err(Refused::NotOpen),
            (Ask::Deposit { cents, .. }, Some(_)) => {
                Ok(Decision::event(Posted::Deposited { cents: *cents }))
            }
        }
    }
}

struct Bank<S: sequor::Store> {
    service: CommandService<S>,
    tenant: TenantId,
}

impl<S: sequor::Store> Bank<S> {
    fn new(store: S, memory: Memory) -> Result<Self> {
        let mut service = CommandService::builder(store).decider::<Account, Ask>();
        if memory == Memory::Off {
            service = service.aggregates_cached_max(0);
        }
        let service = service.build()?;
        Ok(Self { service, tenant: "018f2f6e-0000-7000-8000-000000000001".parse()? })
    }

    async fn ask(&self, ask: Ask) -> Result<(), Failure> {
        let key = new_id().to_string().parse().map_err(anyhow::Error::from)?;
        let receipt = self.service.execute(ask, Meta::new(self.tenant).key(key)).await;
        match receipt {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::Other(anyhow::anyhow!("{error}"))),
        }
    }
}

/// Whether each event leaves a message in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outbox {
    /// As it will be.
    Written,
    /// To see what it costs.
    Left,
}

/// On PostgreSQL.
pub(crate) struct OnPostgres {
    pub(crate) memory: Memory,
    pub(crate) outbox: Outbox,
}

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "sequor"
    }

    fn about(&self) -> &'static str {
        match self.outbox {
            Outbox::Written => "default settings; a UUIDv7 key and an outbox row for each command",
            Outbox::Left => "default settings; a UUIDv7 key for each command, no outbox row",
        }
    }

    fn cold(&self) -> Option<&'static dyn System> {
        Some(match self.outbox {
            Outbox::Written => &Self { memory: Memory::Off, outbox: Outbox::Written },
            Outbox::Left => &Self { memory: Memory::Off, outbox: Outbox::Left },
        })
    }

    async fn install(&self, place: &Place) -> Result<()> {
        install(&place.url.parse()?).await?;
        if self.outbox == Outbox::Written {
            let pool = pool(&place.url).await?;
            sqlx::raw_sql(include_str!("outbox.sql")).execute(&pool).await?;
            pool.close().await;
        }
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let store = PostgresStore::open(place.url.parse()?).await?;
        Ok(Arc::new(Bank::new(store, self.memory)?))
    }
}

#[async_trait]
impl Accounts for Bank<PostgresStore> {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        self.ask(Ask::Open { account }).await
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        self.ask(Ask::Deposit { account, cents: 1 }).await
    }

    async fn close(&self) {
        self.service.store().close().await;
    }
}

/// On SQLite.
pub(crate) struct OnSqlite(pub(crate) Memory);

async fn open_sqlite(place: &Place) -> Result<SqliteStore> {
    let mut settings = SqliteSettings::new(&place.url);
    if !place.flushes {
        settings.synchronous = Synchronous::Normal;
    }
    Ok(SqliteStore::open(settings).await?)
}

#[async_trait]
impl System for OnSqlite {
    fn name(&self) -> &'static str {
        "sequor"
    }

    fn about(&self) -> &'static str {
        "default settings; a UUIDv7 key for each command, no outbox row"
    }

    fn cold(&self) -> Option<&'static dyn System> {
        Some(&Self(Memory::Off))
    }

    async fn install(&self, place: &Place) -> Result<()> {
        open_sqlite(place).await?.close().await;
        Ok(())
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        Ok(Arc::new(Bank::new(open_sqlite(place).await?, self.0)?))
    }
}

#[async_trait]
impl Accounts for Bank<SqliteStore> {
    async fn create(&self, account: Uuid) -> Result<(), Failure> {
        self.ask(Ask::Open { account }).await
    }

    async fn deposit(&self, account: Uuid) -> Result<(), Failure> {
        self.ask(Ask::Deposit { account, cents: 1 }).await
    }

    async fn close(&self) {
        self.service.store().close().await;
    }
}
