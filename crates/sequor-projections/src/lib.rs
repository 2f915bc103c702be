//! Read models of sequor behind the commands: run, waited for, parked where they fail.
//!
//! *For:* projections whose rows are written after the commands, each event once: a [`Runner`]
//! follows the log, partition by partition, and [`Followed`] waits until it has passed a receipt.
//! *Never:* commands, SQL, or a second way to the rows: stores keep checkpoints and rows in one
//! transaction behind [`KeepCheckpoints`](sequor_core::ports::KeepCheckpoints).
//! *Start here:* [`Runner`] in `runner.rs`; `follower.rs` is the street of an event, and
//! `follower/plan.rs` decides what a step does.

mod runner;

mod follower;

mod board;
mod clock;
mod share;

mod followed;
mod parked;

mod error;

pub use error::{AfterError, ParkedError, StartError, WaitError};
pub use followed::Followed;
pub use runner::settings::RunnerSettings;
pub use runner::{Builder, Runner};
