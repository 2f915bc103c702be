//! sequor (Latin: «I follow»): a command bus on which a command with a key takes effect once.
//!
//! *For:* domains that are modelled with aggregates, serve many tenants, and must not do twice
//! what is asked twice.
//! *Never:* logic of its own; this crate gathers the others under one name.
//! *Start here:* [`CommandService::execute`], and `examples/hello` for a whole program.

pub use sequor_core::*;

pub use sequor_bus::*;

#[cfg(feature = "macros")]
pub use sequor_macros::{Command, Event};

#[cfg(feature = "memory")]
pub use sequor_memory as memory;
#[cfg(feature = "sqlite")]
pub use sequor_sqlite as sqlite;

/// For implementing the traits of this crate that have async methods.
pub use async_trait::async_trait;

/// The pages of the documentation whose code must run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guides/idempotency.md")]
    struct Idempotency;
    #[doc = include_str!("../../../docs/guides/modelling.md")]
    struct Modelling;
    #[cfg(feature = "sqlite")]
    #[doc = include_str!("../../../docs/guides/sqlite.md")]
    struct Sqlite;
}
