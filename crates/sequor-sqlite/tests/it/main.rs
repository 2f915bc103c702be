//! What this driver promises beyond the common suite: shared transactions, one bus a file, damage,
//! faults, plans.

mod support;

mod damage;
mod faults;
mod group;
mod open;
mod plans;
mod transaction;
