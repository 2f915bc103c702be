//! How each system is used: as its own documents say, with the settings that suit it best.

mod cqrs_es;
mod distributed;
#[cfg(feature = "es-entity")]
mod es_entity;
mod esrs;
mod eventcore;
mod evento;
mod ours;

use std::time::Duration;

pub(crate) use self::ours::Outbox;
use crate::peer::{Memory, Place, System};

/// sequor on PostgreSQL.
pub(crate) fn ours_on_postgres(outbox: Outbox) -> &'static dyn System {
    match outbox {
        Outbox::Written => &ours::OnPostgres { memory: Memory::On, outbox: Outbox::Written },
        Outbox::Left => &ours::OnPostgres { memory: Memory::On, outbox: Outbox::Left },
    }
}

/// The others on PostgreSQL.
pub(crate) const POSTGRES: &[&dyn System] = &[
    &cqrs_es::OnPostgres,
    &esrs::OnPostgres,
    #[cfg(feature = "es-entity")]
    &es_entity::OnPostgres,
    &evento::OnPostgres(Memory::On),
    &eventcore::OnPostgres,
    &distributed::OnPostgres,
];

/// sequor on SQLite.
pub(crate) const OURS_ON_SQLITE: &dyn System = &ours::OnSqlite(Memory::On);

/// The others on SQLite.
pub(crate) const SQLITE: &[&dyn System] = &[
    &cqrs_es::OnSqlite,
    &evento::OnSqlite(Memory::On),
    &eventcore::OnSqlite,
    &distributed::OnSqlite,
];

/// As many as is best for a server on two cores.
const POSTGRES_CONNECTIONS: u32 = 8;

/// One writer at a time is SQLite's own rule: more connections only meet at its lock, where some give
/// up.
const SQLITE_CONNECTIONS: u32 = 1;

const ACQUIRE_TIME_MAX: Duration = Duration::from_secs(30);

/// Pools by one version of the driver, which do not ask before each use whether a connection is still
/// there: on PostgreSQL, and on a file of SQLite, whose commits reach the disk where that is measured.
macro_rules! pools {
    ($sqlx:ident, $pool:ident, $sqlite_pool:ident) => {
        async fn $pool(url: &str) -> Result<$sqlx::PgPool, $sqlx::Error> {
            let options = $sqlx::postgres::PgPoolOptions::new()
                .max_connections(POSTGRES_CONNECTIONS)
                .min_connections(POSTGRES_CONNECTIONS)
                .test_before_acquire(false)
                .acquire_timeout(ACQUIRE_TIME_MAX);
            options.connect(url).await
        }

        async fn $sqlite_pool(place: &Place) -> Result<$sqlx::SqlitePool, $sqlx::Error> {
            use $sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
            let synchronous =
                if place.flushes { SqliteSynchronous::Full } else { SqliteSynchronous::Off };
            let file = SqliteConnectOptions::new()
                .filename(&place.url)
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(synchronous);
            let options = $sqlx::sqlite::SqlitePoolOptions::new()
                .max_connections(SQLITE_CONNECTIONS)
                .test_before_acquire(false)
                .acquire_timeout(ACQUIRE_TIME_MAX);
            options.connect_with(file).await
        }
    };
}

pools!(sqlx, pool, sqlite_pool);
pools!(sqlx_09, pool_09, sqlite_pool_09);

/// Whether it is PostgreSQL's word that a unique index has this entry already.
fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}
