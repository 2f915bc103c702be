//! The read model: what every account owes, kept in SQL by the transaction that changes it.

use futures_util::TryStreamExt;
use sequor::{Aggregate, InlineProjection, ProjectionError, StoredEvent, TenantId, async_trait};
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::domain::{Account, AccountEvent};
use crate::money::{Amount, Cents};

/// Creates the table where it is missing.
pub(crate) const CREATE_BALANCES: &str = include_str!("sql/create_balances.sql");

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

#[async_trait]
impl InlineProjection<SqliteConnection> for Balances {
    fn name(&self) -> &'static str {
        "balances"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut SqliteConnection,
    ) -> Result<(), ProjectionError> {
        if event.stream.aggregate.as_str() != Account::NAME {
            return Ok(());
        }
        match event.decode()? {
            AccountEvent::Opened { owner, limit_cents } => {
                insert_balance(event, &owner, limit_cents, connection).await
            }
            AccountEvent::Charged { cents, .. } => {
                change_balance(event, (signed(cents, 1), 1), connection).await
            }
            AccountEvent::Refunded { cents } => {
                change_balance(event, (signed(cents, -1), 0), connection).await
            }
        }
    }
}

fn signed(cents: Amount, sign: i64) -> i64 {
    Cents::from(cents).0 * sign
}

async fn insert_balance(
    event: &StoredEvent,
    owner: &str,
    limit: Cents,
    connection: &mut SqliteConnection,
) -> Result<(), ProjectionError> {
    sqlx::query(include_str!("sql/insert_balance.sql"))
        .bind(event.stream.tenant.as_uuid().as_bytes().as_slice())
        .bind(event.stream.id.as_str())
        .bind(owner)
        .bind(limit.0)
        .bind(i64::try_from(event.version.get())?)
        .execute(connection)
        .await?;
    Ok(())
}

async fn change_balance(
    event: &StoredEvent,
    (cents, charges): (i64, i64),
    connection: &mut SqliteConnection,
) -> Result<(), ProjectionError> {
    let changed = sqlx::query(include_str!("sql/change_balance.sql"))
        .bind(event.stream.tenant.as_uuid().as_bytes().as_slice())
        .bind(event.stream.id.as_str())
        .bind(cents)
        .bind(charges)
        .bind(i64::try_from(event.version.get())?)
        .execute(connection)
        .await?;
    match changed.rows_affected() {
        1 => Ok(()),
        _ => {
            Err(format!("no balance stands right before {} v{}", event.stream, event.version)
                .into())
        }
    }
}

/// Shows every row, by tenant and account, to `each`; however many there are, one is held at a
/// time.
pub(crate) async fn read_balances(
    connection: &mut SqliteConnection,
    mut each: impl FnMut(Balance) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    type Row = (Vec<u8>, String, String, i64, i64, i64, i64);
    let mut rows =
        sqlx::query_as::<_, Row>(include_str!("sql/read_balances.sql")).fetch(connection);
    while let Some((tenant, account, owner, limit, balance, charges, version)) =
        rows.try_next().await?
    {
        let tenant = TenantId::new(Uuid::from_slice(&tenant)?)?;
        let (limit, balance) = (Cents(limit), Cents(balance));
        each(Balance { tenant, account, owner, limit, balance, charges, version })?;
    }
    Ok(())
}
