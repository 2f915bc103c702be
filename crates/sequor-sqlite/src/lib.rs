//! A store of sequor in one SQLite file.
//!
//! *For:* one process that wants every promise of sequor without running a database server: the
//! file is the store, concurrent commits share a transaction and a flush.
//! *Never:* a second bus on the same file (an operating-system lock refuses it; readers and the
//! `sqlite3` shell may open it beside), never SQL outside of `sql/`, no retries of its own.
//! *Start here:* [`SqliteStore`] in `store.rs`; then `writer.rs`, the one task that writes, and
//! `commit/batch.rs`, the street of a commit.

mod settings;
mod store;

mod commit;
mod history;
mod log;
mod transaction;

mod checkpoint;
mod lease;

mod audit;

mod writer;

mod connection;
mod open;
mod project;
mod readers;

mod error;
mod row;

pub use checkpoint::SqliteStep;
pub use error::OpenError;
pub use settings::{SettingsError, SqliteSettings, Synchronous};
pub use store::{SqliteStore, Stats};
pub use transaction::SqliteTransaction;

/// The driver, in the version whose connection projections and handlers get.
pub use sqlx;
