//! Ids in a row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sequor_core::ports::Ids;
use uuid::Uuid;

/// Ids in a row, the same in every run: valid `UUIDv7`s that differ in their last digits. Clones
/// share the row.
///
/// ```
/// use sequor_core::ports::Ids;
/// use sequor_testkit::SequentialIds;
///
/// let ids = SequentialIds::default();
/// assert_eq!(ids.next().to_string(), "019b76da-a800-7000-8000-000000000001");
/// assert_eq!(ids.next(), SequentialIds::nth(2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SequentialIds {
    given: Arc<AtomicU64>,
}

impl SequentialIds {
    /// 2026-01-01T00:00:00Z in milliseconds, version 7, variant 1, zeros.
    const ZEROTH: u128 = 0x019b_76da_a800_7000_8000_0000_0000_0000;

    /// The `number`-th id of every row, from 1. A row has 2⁶² of them.
    #[must_use]
    pub fn nth(number: u64) -> Uuid {
        Uuid::from_u128(Self::ZEROTH | u128::from(number & (u64::MAX >> 2)))
    }
}

impl Ids for SequentialIds {
    fn next(&self) -> Uuid {
        Self::nth(self.given.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
