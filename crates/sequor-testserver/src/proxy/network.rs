//! What the network between client and server does: it takes time, stands still, loses answers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The network that all connections of a proxy share.
#[derive(Debug, Default)]
pub(super) struct Network {
    delay_nanos: AtomicU64,
    /// The number of the next request whose answer gets lost; 0 for none.
    loses: AtomicU64,
    /// A hint that spares the lock; what the lock guards counts.
    is_paused: AtomicBool,
    paused: Mutex<bool>,
    resumed: Condvar,
}

impl Network {
    pub(super) fn set_delay(&self, delay: Duration) {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.delay_nanos.store(nanos, Ordering::Release);
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_nanos.load(Ordering::Acquire))
    }

    pub(super) fn set_loses(&self, request: u64) {
        self.loses.store(request, Ordering::Release);
    }

    /// Counts one request, and tells whether it is the one whose answer gets lost.
    pub(super) fn loses_answer(&self) -> bool {
        let one_less = |number: u64| number.checked_sub(1);
        let before = self.loses.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        before == Ok(1)
    }

    pub(super) fn set_paused(&self, paused: bool) {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = paused;
        self.is_paused.store(paused, Ordering::Release);
        self.resumed.notify_all();
    }

    /// Returns when the network is not paused.
    pub(super) fn pass(&self) {
        if !self.is_paused.load(Ordering::Acquire) {
            return;
        }
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.resumed.wait_while(paused, |paused| *paused));
    }
}

/// Sleeps as long as it was asked to, on average: systems wake sleepers too late, always by about
/// the same time, so that time is measured and taken off.
#[derive(Debug, Default)]
pub(super) struct Sleeper {
    lateness: Duration,
}

impl Sleeper {
    /// What is later than this is the machine being busy, not the timer.
    const LATENESS_MAX: Duration = Duration::from_micros(200);

    #[expect(clippy::disallowed_methods, reason = "the delay is what is being simulated")]
    pub(super) fn sleep(&mut self, duration: Duration) {
        if duration.is_zero() {
            return;
        }
        let start = Instant::now();
        let asked = duration.saturating_sub(self.lateness);
        thread::sleep(asked);
        let late = start.elapsed().saturating_sub(asked).min(Self::LATENESS_MAX);
        self.lateness = (self.lateness * 7 + late) / 8;
    }
}
