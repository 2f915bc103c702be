//! The reference store under the suite that every store passes, and what only it does.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use sequor_core::TenantId;

mod conformance;
mod tables;
mod turns;

fn tenant() -> TenantId {
    "018f2f6e-0000-7000-8000-000000000001".parse().unwrap()
}
