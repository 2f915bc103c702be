//! A clock that stands still until it is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sequor_core::Timestamp;
use sequor_core::ports::Clock;

/// A clock that stands still until it is moved; clones show the same time. It begins at
/// 2026-01-01T00:00:00Z.
///
/// ```
/// use std::time::Duration;
/// use sequor_core::ports::Clock;
/// use sequor_testkit::ManualClock;
///
/// let clock = ManualClock::default();
/// let builder_takes = clock.clone();
/// clock.advance(Duration::from_secs(90));
/// assert_eq!(builder_takes.now().to_string(), "2026-01-01T00:01:30.000000Z");
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    /// Microseconds of the epoch.
    micros: Arc<AtomicI64>,
}

impl ManualClock {
    /// Where it begins, in microseconds of the epoch: 2026-01-01T00:00:00Z.
    const START: i64 = 1_767_225_600_000_000;

    /// A clock that shows a time.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self { micros: Arc::new(AtomicI64::new(time.as_micros())) }
    }

    /// Sets the time, forwards or backwards, as machines do.
    pub fn set(&self, time: Timestamp) {
        self.micros.store(time.as_micros(), Ordering::SeqCst);
    }

    /// Moves the time on. What is below a microsecond is lost.
    ///
    /// # Panics
    /// When the duration is longer than 292,000 years.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("a clock moves on by less than an aeon");
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    /// # Panics
    /// When it was moved out of the calendar.
    fn now(&self) -> Timestamp {
        let now = Timestamp::from_micros(self.micros.load(Ordering::SeqCst));
        now.expect("the clock shows a time of the calendar")
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self { micros: Arc::new(AtomicI64::new(Self::START)) }
    }
}
