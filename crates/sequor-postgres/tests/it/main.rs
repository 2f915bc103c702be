//! What this driver promises beyond the common suite: one trip a batch, nobody waits for a
//! neighbour's lock, walls between tenants, a mark that no writer can undercut, faults, plans.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic as tests may"
)]

mod support;

mod conformance;

mod audit;
mod faults;
mod hostile;
mod language;
mod marks;
mod neighbours;
mod opening;
mod plans;
mod pooled;
mod restore;
mod retention;
mod steps;
mod walls;
