//! The pure parts, by example and by property.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod canonical;
mod commit;
mod key;
mod unique;
