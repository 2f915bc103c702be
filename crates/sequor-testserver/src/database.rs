//! A database of its own for a test, gone afterwards.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};

use crate::server;

/// How often tests that run at the same time may be in each other's way.
const RIVALS_MAX: u32 = 50;

/// A database of its own on a server, empty at first. Dropping it drops the database, whoever is
/// still connected.
#[derive(Debug)]
pub struct Database {
    name: String,
    /// How its owner reaches it.
    owner: PgConnectOptions,
}

impl Database {
    /// A database on the server that the tests were given, see [`server::url`].
    ///
    /// # Panics
    /// When there is no server, or it makes no database: a test cannot go on without.
    pub async fn new() -> Self {
        Self::on(&server::url()).await
    }

    /// A database on the server of this URL, as the user it names.
    ///
    /// # Panics
    /// When the server cannot be reached, or makes no database.
    pub async fn on(url: &str) -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("sequor_test_{}_{number}", std::process::id());
        let server: PgConnectOptions = url.parse().expect("the URL of a server");
        let mut admin = server.connect().await.expect("a session on the server");
        let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        run(&mut admin, create).await.expect("a database is made");
        Self { owner: server.database(&name), name }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its owner reaches it.
    #[must_use]
    pub fn owner(&self) -> PgConnectOptions {
        self.owner.clone()
    }

    /// How another role reaches it.
    #[must_use]
    pub fn role(&self, role: &str) -> PgConnectOptions {
        self.owner.clone().username(role)
    }

    /// Makes sure that a role is there which may log in and is a member of others. Roles belong to the
    /// whole server, so it may be there already, or be made by another test at the same time.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn make_role(&self, role: &str, member_of: &str) {
        let make = format!(
            "DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
                    CREATE ROLE {role} LOGIN;
                END IF;
                GRANT {member_of} TO {role};
            END $$"
        );
        let mut session = self.session().await;
        for _ in 0..RIVALS_MAX {
            if run(&mut session, make.clone()).await.is_ok() {
                return;
            }
        }
        self.run(&make).await;
    }

    /// A session of its owner, as `psql` would have it.
    ///
    /// # Panics
    /// When there is none to be had.
    pub async fn session(&self) -> PgConnection {
        self.owner.connect().await.expect("a session of the owner")
    }

    /// Runs statements as its owner, in one transaction.
    ///
    /// # Panics
    /// When one of them fails.
    pub async fn run(&self, sql: &str) {
        let done = run(&mut self.session().await, sql.to_owned()).await;
        done.expect("the owner's statements");
    }
}

async fn run(session: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(session).await.map(drop)
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.owner.clone().database("postgres"), self.name.clone());
        // A thread of its own: a runtime may be running here, and must not wait.
        let gone = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                // A server that is gone has taken it along.
                let Ok(mut admin) = server.connect().await else { return };
                run(&mut admin, format!("DROP DATABASE {name} WITH (FORCE)")).await.ok();
            });
        });
        gone.join().ok();
    }
}
