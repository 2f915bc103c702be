//! The machine's time and chance, where nothing else is handed in.

use sequor_core::Timestamp;
use sequor_core::ports::Clock;
use uuid::Uuid;

/// The machine's clock.
#[derive(Debug)]
pub(crate) struct MachineClock;

impl Clock for MachineClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock port's own implementation")]
    fn now(&self) -> Timestamp {
        Timestamp::from(chrono::Utc::now())
    }
}

/// Names a runner for its life.
#[expect(clippy::disallowed_methods, reason = "nothing is decided by it")]
pub(crate) fn name_runner() -> Uuid {
    Uuid::now_v7()
}
