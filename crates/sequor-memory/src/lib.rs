//! The reference store of sequor, in memory.
//!
//! *For:* tests, demos, and saying in few lines what every store must do: it judges a commit with
//! [`sequor_core::admission::admit`] and keeps what follows from it in hash maps.
//! *Never:* anything durable, and no clock, no chance, no I/O: the same calls in the same order
//! give the same answers.
//! *Start here:* [`MemoryStore`] in `store.rs`, then `content.rs` for what it holds.

mod store;

mod commit;
mod history;
mod log;
mod transaction;

mod checkpoint;
mod lease;

mod audit;

mod content;
mod project;
mod tables;

pub use checkpoint::MemoryStep;
pub use store::MemoryStore;
pub use tables::Tables;
pub use transaction::MemoryTransaction;
