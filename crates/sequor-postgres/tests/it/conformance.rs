//! A harness, and one line.

use async_trait::async_trait;
use sequor_conformance::{Abilities, Harness, Tally};
use sequor_core::{ProjectionError, TenantId};
use sequor_postgres::{PostgresSettings, PostgresStore};
use sequor_testserver::Database;
use sqlx::PgConnection;
use tokio::sync::Mutex;

use crate::support::{installed, settings};

sequor_conformance::conformance!(Postgres::opened_by(settings));

/// The stores of a behaviour.
pub(crate) struct Postgres {
    settings: fn(&Database) -> PostgresSettings,
    /// Their databases, the last one's last.
    databases: Mutex<Vec<Database>>,
}

impl Postgres {
    pub(crate) fn opened_by(settings: fn(&Database) -> PostgresSettings) -> Self {
        Self { settings, databases: Mutex::default() }
    }

    async fn open(&self, database: &Database) -> PostgresStore {
        PostgresStore::open((self.settings)(database)).await.unwrap()
    }
}

const CREATE: &str = "CREATE TABLE tallies (
    tenant_id uuid NOT NULL PRIMARY KEY, count bigint NOT NULL, sum bigint NOT NULL
); SELECT sequor.wall('tallies')";
const ADD: &str = "INSERT INTO tallies AS tally (tenant_id, count, sum) VALUES ($1, 1, $2)
    ON CONFLICT (tenant_id) DO UPDATE SET count = tally.count + 1, sum = tally.sum + $2";
const READ: &str = "SELECT count, sum FROM tallies WHERE tenant_id = $1";

#[async_trait]
impl Harness for Postgres {
    type Store = PostgresStore;

    fn abilities(&self) -> Abilities {
        Abilities::none().reopens()
    }

    async fn fresh(&self) -> PostgresStore {
        let database = installed().await;
        database.run(CREATE).await;
        let store = self.open(&database).await;
        self.databases.lock().await.push(database);
        store
    }

    async fn reopen(&self, store: PostgresStore) -> PostgresStore {
        store.close().await;
        self.open(self.databases.lock().await.last().unwrap()).await
    }

    async fn add(
        &self,
        connection: &mut PgConnection,
        tenant: TenantId,
        amount: i64,
    ) -> Result<(), ProjectionError> {
        // As user SQL must be that may run behind a pooler.
        let add = sqlx::query(ADD).persistent(false).bind(tenant.as_uuid()).bind(amount);
        add.execute(connection).await?;
        Ok(())
    }

    async fn tally(&self, _store: &PostgresStore, tenant: TenantId) -> Tally {
        let databases = self.databases.lock().await;
        let mut owner = databases.last().unwrap().session().await;
        let read = sqlx::query_as(READ).bind(tenant.as_uuid()).fetch_optional(&mut owner).await;
        let (count, sum): (i64, i64) = read.unwrap().unwrap_or_default();
        Tally { count: count.unsigned_abs(), sum }
    }
}
