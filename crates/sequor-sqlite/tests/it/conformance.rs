//! A harness, and one line.

use std::sync::Mutex;

use async_trait::async_trait;
use sequor_conformance::{Abilities, Harness, Tally};
use sequor_core::{ProjectionError, TenantId};
use sequor_sqlite::SqliteStore;
use sqlx::SqliteConnection;
use tempfile::TempDir;

sequor_conformance::conformance!(Sqlite::default());

/// The folders of a behaviour's stores, the last one's last.
#[derive(Default)]
struct Sqlite(Mutex<Vec<TempDir>>);

impl Sqlite {
    fn path(&self) -> std::path::PathBuf {
        self.0.lock().unwrap().last().unwrap().path().join("store.db")
    }
}

const CREATE: &str = "CREATE TABLE tallies (
    tenant_id BLOB NOT NULL PRIMARY KEY, count INTEGER NOT NULL, sum INTEGER NOT NULL
) STRICT";
const ADD: &str = "INSERT INTO tallies (tenant_id, count, sum) VALUES (?1, 1, ?2)
    ON CONFLICT (tenant_id) DO UPDATE SET count = count + 1, sum = sum + ?2";
const READ: &str = "SELECT count, sum FROM tallies WHERE tenant_id = ?1";

async fn beside(path: &std::path::Path) -> SqliteConnection {
    use sqlx::ConnectOptions;
    sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

fn bytes(tenant: TenantId) -> Vec<u8> {
    tenant.as_uuid().as_bytes().to_vec()
}

#[async_trait]
impl Harness for Sqlite {
    type Store = SqliteStore;

    fn abilities(&self) -> Abilities {
        Abilities::none().one_writer().reopens()
    }

    async fn fresh(&self) -> SqliteStore {
        self.0.lock().unwrap().push(tempfile::tempdir().unwrap());
        let store = SqliteStore::open_path(self.path()).await.unwrap();
        sqlx::query(CREATE).execute(&mut beside(&self.path()).await).await.unwrap();
        store
    }

    async fn reopen(&self, store: SqliteStore) -> SqliteStore {
        store.close().await;
        SqliteStore::open_path(self.path()).await.unwrap()
    }

    async fn add(
        &self,
        connection: &mut SqliteConnection,
        tenant: TenantId,
        amount: i64,
    ) -> Result<(), ProjectionError> {
        sqlx::query(ADD).bind(bytes(tenant)).bind(amount).execute(connection).await?;
        Ok(())
    }

    async fn tally(&self, _store: &SqliteStore, tenant: TenantId) -> Tally {
        let mut connection = beside(&self.path()).await;
        let read = sqlx::query_as(READ).bind(bytes(tenant)).fetch_optional(&mut connection).await;
        let (count, sum): (i64, i64) = read.unwrap().unwrap_or_default();
        Tally { count: count.unsigned_abs(), sum }
    }
}
