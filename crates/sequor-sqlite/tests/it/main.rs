//! What this driver promises beyond the common suite: shared transactions, one bus a file, damage,
//! faults, plans.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic as tests may"
)]

mod support;

mod conformance;

mod audit;
mod damage;
mod faults;
mod group;
mod open;
mod plans;
mod transaction;
