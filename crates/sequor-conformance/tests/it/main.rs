//! The suite under trial: it must catch stores that break one promise each, and pass the one that
//! keeps them all.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests panic as tests do"
)]

mod broken;
mod faults;
mod suite;
