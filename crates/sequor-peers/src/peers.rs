//! How each system is used: as its own documents say, with the settings that suit it best.

mod cqrs_es;
mod distributed;
mod esrs;
mod eventcore;
mod evento;
mod ours;

use crate::peer::System;

/// On PostgreSQL; sequor comes first.
pub(crate) const POSTGRES: [&dyn System; 6] = [
    &ours::OnPostgres,
    &cqrs_es::OnPostgres,
    &esrs::OnPostgres,
    &evento::OnPostgres,
    &eventcore::OnPostgres,
    &distributed::OnPostgres,
];

/// A pool as small as is best for two cores, and without a question to the server before each use.
async fn pool(url: &str) -> Result<sqlx::PgPool, sqlx::Error> {
    let options = sqlx::postgres::PgPoolOptions::new();
    options
        .max_connections(POOL_CONNECTIONS_MAX)
        .min_connections(POOL_CONNECTIONS_MAX)
        .test_before_acquire(false)
        .acquire_timeout(std::time::Duration::from_secs(30))
        .connect(url)
        .await
}

const POOL_CONNECTIONS_MAX: u32 = 8;

/// Whether it is PostgreSQL's word that a unique index has this entry already.
fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}
