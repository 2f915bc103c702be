//! A store of sequor in a PostgreSQL database, version 15 or newer.
//!
//! *For:* several processes that share one database; a command is one round trip when its aggregate
//! is cached or when it says that it begins one, two when not, and concurrent commands of a process
//! share a trip and a flush.
//! *Never:* SQL outside of `sql/` and the migrations, retries of its own, a pool in a handler's
//! hand.
//! *Start here:* [`PostgresStore`] in `store.rs`; then `writer.rs`, which gathers commits, and
//! `commit/batch.rs`, the street of a batch. What the server does with one stands in
//! `migrations/postgres/0004_commit.sql`.

mod settings;
mod store;

mod commit;
mod history;
mod log;
mod transaction;

mod checkpoint;
mod lease;

mod retention;

mod audit;

mod writer;

mod connection;
mod literal;
mod open;
mod partitions;
mod pool;
mod project;
mod statement;

mod error;
mod row;

pub use checkpoint::PostgresStep;
pub use error::OpenError;
pub use open::install;
pub use retention::{ArchiveMonth, Exported, MonthDrop, ReaperSettings};
pub use settings::{PostgresSettings, SettingsError};
pub use store::{PostgresStore, Stats};
pub use transaction::PostgresTransaction;

/// The driver, in the version whose connection projections and handlers get.
pub use sqlx;
