//! Accounts that are paid into, transfers between them, and the names that they hold.

use std::convert::Infallible;
use std::marker::PhantomData;

use sequor::ports::{Store, Transact};
use sequor::{
    Aggregate, Command, Decider, Decision, Error, Event, Handler, Projection, ProjectionError,
    Repo, StoredEvent, TenantId, async_trait,
};
use serde::{Deserialize, Serialize};

/// A store with rows of the domain's own.
#[async_trait]
pub(crate) trait Home: Store + Clone {
    /// Writes a row of an account: `sql` is one of the statements below.
    async fn add(
        connection: &mut Self::Connection,
        sql: &'static str,
        row: (TenantId, &str, i64),
    ) -> Result<(), sqlx::Error>;
}

/// What the projection keeps: the sum of every event.
const ADD_SUM: &str = "INSERT INTO sums (tenant_id, account, cents) VALUES ($1, $2, $3)
    ON CONFLICT (tenant_id, account) DO UPDATE SET cents = sums.cents + excluded.cents";

/// What the handler keeps: a row for each end of a transfer. Nobody waits for anybody's.
const ADD_MOVED: &str = "INSERT INTO moved (tenant_id, account, cents) VALUES ($1, $2, $3)";

#[derive(Command, Serialize, Deserialize)]
#[command(name = "deposit", id = account, output = i64)]
pub(crate) struct Deposit {
    pub(crate) account: u64,
    pub(crate) cents: i64,
}

/// Takes a name that nobody else of the tenant has, and lets go of the one before.
#[derive(Command, Serialize, Deserialize)]
#[command(name = "rename", id = account, output = i64)]
pub(crate) struct Rename {
    pub(crate) account: u64,
    pub(crate) name: String,
}

#[derive(Command, Serialize, Deserialize)]
#[command(name = "transfer", output = i64)]
pub(crate) struct Transfer {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) cents: i64,
}

#[derive(Event, Serialize, Deserialize)]
pub(crate) enum Happened {
    Posted { cents: i64 },
    Renamed { name: String },
}

#[derive(Clone, Default)]
pub(crate) struct Account(i64);

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = Happened;
    fn apply(&mut self, happened: &Happened) {
        match happened {
            Happened::Posted { cents } => self.0 += cents,
            Happened::Renamed { .. } => {}
        }
    }
}

impl Decider<Deposit> for Account {
    fn decide(&self, deposit: &Deposit) -> Result<Decision<Happened, i64>, Infallible> {
        let cents = deposit.cents;
        Ok(Decision::event(Happened::Posted { cents }).output(self.0 + cents))
    }
}

impl Decider<Rename> for Account {
    fn decide(&self, rename: &Rename) -> Result<Decision<Happened, i64>, Infallible> {
        let renamed = Happened::Renamed { name: rename.name.clone() };
        Ok(Decision::event(renamed).hold("account.name", &rename.name).output(self.0))
    }
}

/// Moves money, and keeps rows of its own.
pub(crate) struct Transfers;

#[async_trait]
impl<H: Home> Handler<Transfer, H> for Transfers {
    async fn handle(&self, ask: &Transfer, repo: &mut Repo<H>) -> Result<i64, Error<Infallible>> {
        // Always in the same order: after a conflict they are held from here on, and who holds one
        // must not wait for who holds the other.
        let (from, to) = if ask.from.to_string() < ask.to.to_string() {
            let from = repo.load::<Account>(ask.from).await?;
            (from, repo.load::<Account>(ask.to).await?)
        } else {
            let to = repo.load::<Account>(ask.to).await?;
            (repo.load::<Account>(ask.from).await?, to)
        };
        repo.emit(from, &Happened::Posted { cents: -ask.cents })?;
        repo.emit(to, &Happened::Posted { cents: ask.cents })?;
        let tenant = repo.tenant();
        for (account, cents) in [(ask.from, -ask.cents), (ask.to, ask.cents)] {
            let row = (tenant, &*account.to_string(), cents);
            let added = H::add(repo.connection()?, ADD_MOVED, row).await;
            added.map_err(|error| repo.own_rows_failed(error))?;
        }
        Ok(repo.get(from).0)
    }
}

/// The sum of every account, in the command's own transaction.
pub(crate) struct Sums<H>(pub(crate) PhantomData<fn() -> H>);

#[async_trait]
impl<H: Home> Projection<<H as Transact>::Connection> for Sums<H> {
    fn name(&self) -> &str {
        "sums"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut <H as Transact>::Connection,
    ) -> Result<(), ProjectionError> {
        if let Happened::Posted { cents } = event.decode()? {
            let row = (event.stream.tenant, event.stream.id.as_str(), cents);
            H::add(connection, ADD_SUM, row).await?;
        }
        Ok(())
    }
}
