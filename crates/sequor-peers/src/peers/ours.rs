//! sequor, with its default settings and a key for each command.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use sequor::postgres::{PostgresStore, install};
use sequor::{Aggregate, Command, CommandService, Decider, Decision, Event, Meta, TenantId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::peer::{Accounts, Failure, Place, System, new_id};

#[derive(Command, Serialize, Deserialize)]
#[command(id = account, rejection = Refused)]
enum Ask {
    Open { account: Uuid },
    Deposit { account: Uuid, cents: u64 },
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
    fn new(store: S) -> Result<Self> {
        let service = CommandService::builder(store).decider::<Account, Ask>().build()?;
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

/// On PostgreSQL.
pub(crate) struct OnPostgres;

#[async_trait]
impl System for OnPostgres {
    fn name(&self) -> &'static str {
        "sequor"
    }

    fn about(&self) -> &'static str {
        "default settings; a UUIDv7 key for each command"
    }

    async fn install(&self, place: &Place) -> Result<()> {
        Ok(install(&place.url.parse()?).await?)
    }

    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>> {
        let store = PostgresStore::open(place.url.parse()?).await?;
        Ok(Arc::new(Bank::new(store)?))
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
