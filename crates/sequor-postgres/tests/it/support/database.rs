//! A database of its own for a test, with sequor's tables, gone afterwards.

use std::sync::atomic::{AtomicU32, Ordering};

use sequor_postgres::{PostgresSettings, PostgresStore, install};
use sequor_testserver::server;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};

/// The role that stores work as: it owns nothing, and is a member of sequor's two roles.
pub(crate) const BUS: &str = "sequor_test_bus";

/// A database of its own.
pub(crate) struct Database {
    name: String,
    /// The role that owns everything.
    owner: PgConnectOptions,
}

impl Database {
    pub(crate) async fn new() -> Self {
        Self::on(&server::url()).await
    }

    /// A database on a server.
    pub(crate) async fn on(url: &str) -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("sequor_test_{}_{number}", std::process::id());
        let server: PgConnectOptions = url.parse().unwrap();
        let mut admin = server.connect().await.unwrap();
        run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")).await;
        let database = Self { owner: server.database(&name), name };
        install(&PostgresSettings::new(database.owner.clone())).await.unwrap();
        make_bus(&mut admin).await;
        database
    }

    /// How the bus reaches it.
    pub(crate) fn settings(&self) -> PostgresSettings {
        PostgresSettings::new(self.owner.clone().username(BUS))
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::open(self.settings()).await.unwrap()
    }

    /// A session of the owner, as `psql` would have it.
    pub(crate) async fn owner(&self) -> PgConnection {
        self.owner.connect().await.unwrap()
    }

    /// Runs statements as the owner.
    pub(crate) async fn run(&self, sql: &str) {
        run(&mut self.owner().await, sql.to_owned()).await;
    }
}

/// Rivals may make it at the same time.
async fn make_bus(admin: &mut PgConnection) {
    let make = format!(
        "DO $$ BEGIN
            CREATE ROLE {BUS} LOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
        DO $$ BEGIN
            GRANT sequor_app, sequor_system TO {BUS};
        EXCEPTION WHEN unique_violation OR internal_error THEN NULL; END $$"
    );
    run(admin, make).await;
}

pub(crate) async fn run(connection: &mut PgConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.owner.clone().database("postgres"), self.name.clone());
        let gone = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let drop = format!("DROP DATABASE {name} WITH (FORCE)");
                let Ok(mut admin) = server.connect().await else { return };
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut admin).await.ok();
            });
        });
        gone.join().ok();
    }
}
