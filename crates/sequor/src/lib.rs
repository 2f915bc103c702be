//! sequor (Latin: «I follow»): a command bus on which a command with a key takes effect once.
//!
//! *For:* domains that are modelled with aggregates, serve many tenants, and must not do twice
//! what is asked twice.
//! *Never:* logic of its own; this crate gathers the others under one name.
//! *Start here:* [`CommandService::execute`], and `examples/hello` for a whole program.
//!
//! | feature | brings |
//! |---|---|
//! | `memory` (default) | the store in memory, for tests and demos |
//! | `macros` (default) | `#[derive(Command)]` and `#[derive(Event)]` |
//! | `projections` | read models behind the commands: runners, and waiting for them |
//! | `sqlite` | the store in one SQLite file |
//! | `postgres` | the store in a PostgreSQL database |
//!
//! What a domain is made of: [`Command`], [`Event`], [`Aggregate`], [`Decider`] or [`Handler`].
//! What a service is made of: [`Builder`], [`Middleware`], [`Authorize`], [`Filter`],
//! [`Projection`]. What comes back: [`Receipt`], or [`Error`] by what the caller does next.
//! Authors of stores start at [`ports`].

pub use sequor_core::*;

pub use sequor_bus::*;

#[cfg(feature = "macros")]
pub use sequor_macros::{Command, Event};

pub use sequor_core::ports::{Clock, Denied, Ids, Store};

/// The store in memory (feature `memory`, on by default).
#[cfg(feature = "memory")]
#[doc(inline)]
pub use sequor_memory as memory;
/// The store in a PostgreSQL database (feature `postgres`).
#[cfg(feature = "postgres")]
#[doc(inline)]
pub use sequor_postgres as postgres;
/// Read models behind the commands (feature `projections`).
#[cfg(feature = "projections")]
#[doc(inline)]
pub use sequor_projections as projections;
/// The store in one SQLite file (feature `sqlite`).
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use sequor_sqlite as sqlite;

/// For implementing the traits of this crate that have async methods.
pub use async_trait::async_trait;
/// For tenants, correlation and causation ids.
pub use uuid;

/// The pages of the documentation whose code must run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guides/idempotency.md")]
    struct Idempotency;
    #[doc = include_str!("../../../docs/guides/service.md")]
    struct Service;
    #[doc = include_str!("../../../docs/guides/modelling.md")]
    struct Modelling;
    #[doc = include_str!("../../../docs/guides/evolution.md")]
    struct Evolution;
    #[cfg(feature = "projections")]
    #[doc = include_str!("../../../docs/guides/projections.md")]
    struct Projections;
    #[doc = include_str!("../../../docs/guides/audit.md")]
    struct Audit;
    #[cfg(feature = "sqlite")]
    #[doc = include_str!("../../../docs/guides/sqlite.md")]
    struct Sqlite;
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../../../docs/guides/postgres.md")]
    struct Postgres;
}
