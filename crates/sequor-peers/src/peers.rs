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

use crate::peer::System;

/// On PostgreSQL; sequor comes first.
pub(crate) const POSTGRES: &[&dyn System] = &[
    &ours::OnPostgres,
    &cqrs_es::OnPostgres,
    &esrs::OnPostgres,
    #[cfg(feature = "es-entity")]
    &es_entity::OnPostgres,
    &evento::OnPostgres,
    &eventcore::OnPostgres,
    &distributed::OnPostgres,
];

/// As many as is best for a server on two cores.
const POSTGRES_CONNECTIONS: u32 = 8;

const ACQUIRE_TIME_MAX: Duration = Duration::from_secs(30);

/// A pool that does not ask the server before each use whether it is still there.
async fn pool(url: &str) -> Result<sqlx::PgPool, sqlx::Error> {
    let options = sqlx::postgres::PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .min_connections(POSTGRES_CONNECTIONS)
        .test_before_acquire(false)
        .acquire_timeout(ACQUIRE_TIME_MAX);
    options.connect(url).await
}

/// The same by the newer driver.
async fn pool_09(url: &str) -> Result<sqlx_09::PgPool, sqlx_09::Error> {
    let options = sqlx_09::postgres::PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .min_connections(POSTGRES_CONNECTIONS)
        .test_before_acquire(false)
        .acquire_timeout(ACQUIRE_TIME_MAX);
    options.connect(url).await
}

/// Whether it is PostgreSQL's word that a unique index has this entry already.
fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}
