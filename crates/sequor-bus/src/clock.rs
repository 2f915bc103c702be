//! The machine's time and chance, where nothing else is handed in.

use sequor_core::Timestamp;
use sequor_core::ports::{Clock, Ids};
use uuid::Uuid;

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock port's own implementation")]
    fn now(&self) -> Timestamp {
        Timestamp::from(chrono::Utc::now())
    }
}

/// UUIDv7: the machine's time, then chance.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the id port's own implementation")]
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}
