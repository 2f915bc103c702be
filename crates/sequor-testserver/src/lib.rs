//! PostgreSQL for tests and benchmarks: a private server that is gone afterwards.
//!
//! *For:* the workspace's own tests and benchmarks. `cargo xtask test` starts one [`Cluster`] for
//! all of them, and a test asks [`server::url()`] where it is.
//! *Never:* a part of a program that runs; not published; knows nothing of sequor.
//! *Start here:* [`Cluster`] in `cluster.rs`, then `supervised.rs`, which sees to it that no
//! server outlives the process that started it, however that process ends.

pub mod server;

mod cluster;

mod bouncer;
mod proxy;

#[cfg(feature = "database")]
mod database;

mod account;
mod address;
mod find;
mod install;
mod port;
mod supervised;

mod error;
mod patience;

pub use bouncer::PgBouncer;
pub use cluster::{Cluster, ClusterBuilder};
#[cfg(feature = "database")]
pub use database::Database;
pub use error::ServerError;
pub use find::{Binaries, MAJOR_MIN, installed_versions};
pub use install::install_pgbouncer;
pub use proxy::{Counts, Proxy};
