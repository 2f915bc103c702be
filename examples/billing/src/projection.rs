//! The read model: what every account owes, kept in SQL by the transaction that changes it.

mod postgres;
mod sqlite;

use sequor::{Aggregate, Projection, ProjectionError, StoredEvent, TenantId, async_trait};

use crate::database::Reader;
use crate::domain::{Account, AccountEvent};
use crate::money::{Amount, Cents};

/// Keeps the table `balances`.
pub(crate) struct Balances;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Balance {
    /// Whose.
    pub(crate) tenant: TenantId,
    /// Which account.
    pub(crate) account: String,
    /// Its owner.
    pub(crate) owner: String,
    /// How far it may be charged.
    pub(crate) limit: Cents,
    /// What it owes.
    pub(crate) balance: Cents,
    /// How often it was charged.
    pub(crate) charges: i64,
    /// The version of its stream.
    pub(crate) version: i64,
}

/// A connection on which rows are written: the statements of one kind of database.
#[async_trait]
trait Rows: Send {
    /// Writes a new account, which owes nothing.
    async fn insert(
        &mut self,
        event: &StoredEvent,
        owner: &str,
        limit: Cents,
    ) -> Result<(), ProjectionError>;

    /// Changes what an account owes, and how often it was charged; answers how many rows stood
    /// right before the event.
    async fn change(
        &mut self,
        event: &StoredEvent,
        cents: i64,
        charges: i64,
    ) -> Result<u64, ProjectionError>;
}

#[async_trait]
impl<C: Rows> Projection<C> for Balances {
    fn name(&self) -> &'static str {
        "balances"
    }

    async fn project(&self, event: &StoredEvent, rows: &mut C) -> Result<(), ProjectionError> {
        if event.stream.aggregate.as_str() != Account::NAME {
            return Ok(());
        }
        let changed = match event.decode()? {
            AccountEvent::Opened { owner, limit_cents } => {
                return rows.insert(event, &owner, limit_cents).await;
            }
            AccountEvent::Charged { cents, .. } => rows.change(event, signed(cents, 1), 1).await?,
            AccountEvent::Refunded { cents } => rows.change(event, signed(cents, -1), 0).await?,
        };
        match changed {
            1 => Ok(()),
            _ => Err(format!("no balance stands right before {} v{}", event.stream, event.version)
                .into()),
        }
    }
}

fn signed(cents: Amount, sign: i64) -> i64 {
    Cents::from(cents).0 * sign
}

/// Shows every row, by tenant and account, to `each`; however many there are, one is held at a
/// time.
pub(crate) async fn read_balances(
    reader: &mut Reader,
    each: impl FnMut(Balance) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    match reader {
        Reader::Sqlite(connection) => sqlite::read_balances(connection, each).await,
        Reader::Postgres(connection) => postgres::read_balances(connection, each).await,
    }
}
