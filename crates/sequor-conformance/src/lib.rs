//! The one suite that every store of sequor passes.
//!
//! *For:* authors of drivers. Write a [`Harness`], add one line, and each behaviour becomes a test
//! of its own in your crate:
//!
//! ```text
//! // tests/it/conformance.rs
//! sequor_conformance::conformance!(MyHarness::new());
//! ```
//!
//! *Never:* the bus, a particular store, sleeping, luck. Random histories print their seed.
//! *Start here:* [`Harness`] says what a driver hands over, `behaviours.rs` lists what is asked of
//! it, and each topic's file bears the name of its port.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a behaviour that does not hold panics: this is a library of tests"
)]

mod behaviours;
mod harness;

mod audit;
mod checkpoint;
mod commit;
mod history;
mod key;
mod lease;
mod log;
mod oracle;
mod payload;
mod projection;
mod reopen;
mod submit;
mod tenant;
mod transaction;
mod unique;

mod sample;
mod world;

pub use behaviours::{Behaviour, Verdict, all, check};
pub use harness::{Abilities, Connection, Harness, Need, Tally};
