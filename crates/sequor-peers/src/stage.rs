//! The databases on which everybody works: the same for all, and as new for each measurement.

mod postgres;
mod sqlite;

use std::sync::Arc;

use anyhow::{Result, bail};
use async_trait::async_trait;
use futures_util::stream::{self, TryStreamExt as _};
use uuid::Uuid;

pub(crate) use self::postgres::{COPY, Disk, PostgresStage};
pub(crate) use self::sqlite::SqliteStage;
use crate::peer::{Accounts, Failure, Place, System, account};

/// Accounts that are there from the start.
pub(crate) const ACCOUNTS: u64 = 1_000;

/// Events of each of them.
const EVENTS_EACH: u64 = 10;

/// How often something is tried on an account before its system is given up.
const TRIES_MAX: usize = 10;

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

    /// The process of the server, if there is one.
    fn server(&self) -> Result<Option<u32>>;
}

/// Opens the accounts and pays into them, so that each has its events.
async fn fill_accounts(system: &dyn System, place: &Place) -> Result<()> {
    let accounts = system.open(place).await?;
    for_each_account(&accounts, async |accounts, account| accounts.create(account).await).await?;
    for _ in 1..EVENTS_EACH {
        meet_accounts(&accounts).await?;
    }
    accounts.close().await;
    Ok(())
}

/// Pays into each account once, so that whoever remembers accounts knows them all.
pub(crate) async fn meet_accounts(accounts: &Arc<dyn Accounts>) -> Result<()> {
    for_each_account(accounts, async |accounts, account| accounts.deposit(account).await).await
}

/// Does something with each account, with 32 of them at a time.
async fn for_each_account(
    accounts: &Arc<dyn Accounts>,
    what: impl AsyncFn(&dyn Accounts, Uuid) -> Result<(), Failure>,
) -> Result<()> {
    let what = &what;
    let accounts = accounts.as_ref();
    let each = stream::iter((0..ACCOUNTS).map(account).map(Ok));
    each.try_for_each_concurrent(32, |account| async move {
        let mut tries = 1..TRIES_MAX;
        loop {
            match (what(accounts, account).await, tries.next()) {
                (Ok(()), _) => return Ok(()),
                (Err(_), Some(_)) => {}
                (Err(Failure::Conflict), None) => bail!("conflicts where nobody else is"),
                (Err(Failure::Other(error)), None) => return Err(error),
            }
        }
    })
    .await
}
