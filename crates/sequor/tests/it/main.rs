//! Whole-bus scenarios, each written once and run on every store.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]
#![expect(clippy::indexing_slicing, reason = "helpers of tests panic as tests do")]

/// Runs scenarios on every store: a store is one line here, and one `Home` and `Fresh` in `home.rs`.
macro_rules! on_every_store {
    ($($scenario:ident),+ $(,)?) => {
        on_store!(memory: sequor::memory::MemoryStore; $($scenario),+);
        #[cfg(feature = "sqlite")]
        on_store!(sqlite: sequor::sqlite::SqliteStore; $($scenario),+);
        #[cfg(feature = "postgres")]
        on_store!(postgres: sequor::postgres::PostgresStore; $($scenario),+);
    };
}

/// Makes each scenario a test of one store, so that a failure names both. It ends with an audit.
macro_rules! on_store {
    ($name:ident: $store:ty; $($scenario:ident),+) => {
        mod $name {
            use crate::home::Fresh;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $scenario() {
                    let store = <$store>::fresh().await;
                    super::$scenario(store.clone()).await;
                    store.assert_clean().await;
                }
            )+
        }
    };
}

mod bank;
mod doing;
mod home;
mod watched;

mod access;
mod bad_input;
mod batches;
mod builder;
mod cancellation;
mod conflicts;
mod connections;
#[cfg(feature = "postgres")]
mod deadlocks;
mod duplicates;
mod evolution;
#[cfg(feature = "postgres")]
mod expired;
mod falls;
#[cfg(feature = "projections")]
mod followed;
mod handlers;
mod hot;
mod issued;
mod modes;
mod neighbours;
mod order;
mod outcome;
mod projections;
mod readable;
mod refusals;
mod tenants;
mod transfers;
#[cfg(feature = "postgres")]
mod trips;
mod two_tenants;
mod unique;
mod validation;
