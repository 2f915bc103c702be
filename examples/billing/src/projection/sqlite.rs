//! The rows in a SQLite file.

use futures_util::TryStreamExt;
use sequor::{ProjectionError, StoredEvent, TenantId, async_trait};
use sqlx::SqliteConnection;
use uuid::Uuid;

use super::{Balance, Rows};
use crate::money::Cents;

#[async_trait]
impl Rows for SqliteConnection {
    async fn insert(
        &mut self,
        event: &StoredEvent,
        owner: &str,
        limit: Cents,
    ) -> Result<(), ProjectionError> {
        sqlx::query(include_str!("../sql/sqlite/insert_balance.sql"))
            .bind(event.stream.tenant.as_uuid())
            .bind(event.stream.id.as_str())
            .bind(owner)
            .bind(limit.0)
            .bind(i64::try_from(event.version.get())?)
            .execute(self)
            .await?;
        Ok(())
    }

    async fn change(
        &mut self,
        event: &StoredEvent,
        cents: i64,
        charges: i64,
    ) -> Result<u64, ProjectionError> {
        let changed = sqlx::query(include_str!("../sql/sqlite/change_balance.sql"))
            .bind(event.stream.tenant.as_uuid())
            .bind(event.stream.id.as_str())
            .bind(cents)
            .bind(charges)
            .bind(i64::try_from(event.version.get())?)
            .execute(self)
            .await?;
        Ok(changed.rows_affected())
    }
}

pub(super) async fn read_balances(
    connection: &mut SqliteConnection,
    mut each: impl FnMut(Balance) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    type Row = (Uuid, String, String, i64, i64, i64, i64);
    let read = sqlx::query_as::<_, Row>(include_str!("../sql/sqlite/read_balances.sql"));
    let mut rows = read.fetch(connection);
    while let Some((tenant, account, owner, limit, balance, charges, version)) =
        rows.try_next().await?
    {
        let (limit, balance) = (Cents(limit), Cents(balance));
        let tenant = TenantId::new(tenant)?;
        each(Balance { tenant, account, owner, limit, balance, charges, version })?;
    }
    Ok(())
}
