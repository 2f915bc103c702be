//! The stores that the scenarios run on, and the little that a scenario cannot know about them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use sequor::audit::AuditSettings;
use sequor::memory::{MemoryStore, Tables};
use sequor::ports::{Audit, Follow};
use sequor::{ProjectionError, TenantId, async_trait};

use crate::watched::Watched;

/// A store with rows of the user's own: one sum for each tenant.
#[async_trait]
pub(crate) trait Home: Follow + Audit + Clone {
    /// Adds to the tenant's sum, as a handler or a projection does.
    async fn add(
        connection: &mut Self::Connection,
        tenant: TenantId,
        amount: i64,
    ) -> Result<(), ProjectionError>;

    /// The tenant's committed sum.
    async fn sum(&self, tenant: TenantId) -> i64;
}

/// A store that can be made.
pub(crate) trait Fresh: Home {
    /// A fresh, empty store.
    async fn fresh() -> Watched<Self>;
}

impl<S: Home> Watched<S> {
    /// What a scenario has left is whole.
    pub(crate) async fn assert_clean(&self) {
        let report = self.inner.audit(AuditSettings::default()).await.unwrap();
        assert!(report.is_clean(), "the audit: {report}");
    }
}

#[derive(Clone, Default)]
struct Sums(HashMap<TenantId, i64>);

impl Fresh for MemoryStore {
    async fn fresh() -> Watched<Self> {
        Watched::over(Self::new(), Arc::new(()))
    }
}

#[async_trait]
impl Home for MemoryStore {
    async fn add(
        tables: &mut Tables,
        tenant: TenantId,
        amount: i64,
    ) -> Result<(), ProjectionError> {
        *tables.get_mut::<Sums>().0.entry(tenant).or_default() += amount;
        Ok(())
    }

    async fn sum(&self, tenant: TenantId) -> i64 {
        let sum = |tables: &Tables| tables.get::<Sums>()?.0.get(&tenant).copied();
        self.read(sum).unwrap_or_default()
    }
}

/// What must live as long as a store: the folder of its file.
pub(crate) type Ground = Arc<dyn Any + Send + Sync>;

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::sync::Arc;

    use sequor::ports::{Transact, Transaction};
    use sequor::sqlite::{SqliteSettings, SqliteStore};
    use sequor::{ProjectionError, TenantId, async_trait};
    use sqlx::SqliteConnection;

    use super::{Fresh, Home};
    use crate::watched::Watched;

    const CREATE: &str = "CREATE TABLE sums (tenant BLOB PRIMARY KEY, amount INTEGER NOT NULL)";
    const ADD: &str = "INSERT INTO sums VALUES (?, ?) ON CONFLICT DO UPDATE SET amount = amount + \
                       excluded.amount";

    impl Fresh for SqliteStore {
        async fn fresh() -> Watched<Self> {
            let folder = tempfile::tempdir().unwrap();
            let store =
                Self::open(SqliteSettings::new(folder.path().join("bank.db"))).await.unwrap();
            store.set_up(CREATE).await.unwrap();
            Watched::over(store, Arc::new(folder))
        }
    }

    #[async_trait]
    impl Home for SqliteStore {
        async fn add(
            connection: &mut SqliteConnection,
            tenant: TenantId,
            amount: i64,
        ) -> Result<(), ProjectionError> {
            let add = sqlx::query(ADD).bind(tenant.as_uuid().as_bytes().to_vec()).bind(amount);
            add.execute(connection).await?;
            Ok(())
        }

        async fn sum(&self, tenant: TenantId) -> i64 {
            let mut transaction = self.begin(tenant).await.unwrap();
            let sum = sqlx::query_scalar("SELECT amount FROM sums WHERE tenant = ?");
            let sum = sum.bind(tenant.as_uuid().as_bytes().to_vec());
            let sum = sum.fetch_optional(transaction.connection()).await.unwrap();
            sum.unwrap_or_default()
        }
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::sync::Arc;

    use sequor::ports::{Transact, Transaction};
    use sequor::postgres::{PostgresSettings, PostgresStore, install};
    use sequor::{ProjectionError, TenantId, async_trait};
    use sequor_testserver::Database;
    use sqlx::PgConnection;

    use super::{Fresh, Home};
    use crate::watched::Watched;

    const BUS: &str = "sequor_test_bus";
    const CREATE: &str = "CREATE TABLE sums (tenant_id uuid PRIMARY KEY, amount bigint NOT NULL);
        SELECT sequor.wall('sums')";
    const ADD: &str = "INSERT INTO sums VALUES ($1, $2) ON CONFLICT (tenant_id) DO UPDATE SET \
                       amount = sums.amount + excluded.amount";

    impl Fresh for PostgresStore {
        async fn fresh() -> Watched<Self> {
            let database = Database::new().await;
            install(&PostgresSettings::new(database.owner())).await.unwrap();
            database.make_role(BUS, "sequor_app, sequor_system").await;
            database.run(CREATE).await;
            let settings = PostgresSettings::new(database.role(BUS));
            let store = Self::open(settings).await.unwrap();
            Watched::over(store, Arc::new(database))
        }
    }

    #[async_trait]
    impl Home for PostgresStore {
        async fn add(
            connection: &mut PgConnection,
            tenant: TenantId,
            amount: i64,
        ) -> Result<(), ProjectionError> {
            sqlx::query(ADD).bind(tenant.as_uuid()).bind(amount).execute(connection).await?;
            Ok(())
        }

        async fn sum(&self, tenant: TenantId) -> i64 {
            let mut transaction = self.begin(tenant).await.unwrap();
            let sum = sqlx::query_scalar("SELECT amount FROM sums WHERE tenant_id = $1");
            let sum = sum.bind(tenant.as_uuid()).fetch_optional(transaction.connection()).await;
            sum.unwrap().unwrap_or_default()
        }
    }
}
