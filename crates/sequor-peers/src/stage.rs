//! The databases on which everybody works: the same for all, and as new for each measurement.

mod postgres;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use async_trait::async_trait;

pub(crate) use self::postgres::{COPY, Disk, PostgresStage};
use crate::peer::{Failure, Place, System, account};

/// Accounts that are there from the start.
pub(crate) const ACCOUNTS: u64 = 1_000;

/// Events of each of them.
const EVENTS_EACH: u64 = 10;

/// What a round trip costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Nothing but the machine's own loopback.
    Direct,
    /// One millisecond longer.
    Slow,
}

/// One filled database for each system.
#[async_trait(?Send)]
pub(crate) trait Stage: Sync {
    /// Makes the database of a system: its tables, and the accounts with their events.
    async fn fill(&self, system: &dyn System) -> Result<()>;

    /// Makes a copy of a system's database as it was filled, in the place of the last copy.
    async fn copy(&self, system: &dyn System, network: Network) -> Result<Place>;

    /// The process of the server.
    fn server(&self) -> Result<u32>;
}

/// Opens the accounts and pays into them, so that each has its events.
async fn fill_accounts(system: &dyn System, place: &Place) -> Result<()> {
    const TOGETHER: u64 = 32;
    let accounts = system.open(place).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..TOGETHER {
        let accounts = Arc::clone(&accounts);
        tasks.spawn(async move {
            for number in (first..ACCOUNTS).step_by(usize::try_from(TOGETHER)?) {
                accounts.create(account(number)).await.map_err(described)?;
                for _ in 1..EVENTS_EACH {
                    accounts.deposit(account(number)).await.map_err(described)?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done?.with_context(|| format!("filling the accounts of {}", system.name()))?;
    }
    accounts.close().await;
    Ok(())
}

fn described(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Conflict => anyhow::anyhow!("a conflict where nobody else is"),
        Failure::Other(error) => error,
    }
}
