//! The reference store under the suite that every store passes, and what only it does.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod conformance;
mod tables;
mod turns;
