//! Bounded waiting for what only polling can tell: files and processes of others.

use std::time::{Duration, Instant};

/// How long to wait between two looks: short against the start of a server, cheap for the machine.
const STEP: Duration = Duration::from_millis(4);

/// Looks until there is something to see, for `limit` at most; nothing when the time is up.
#[expect(clippy::disallowed_methods, reason = "another process does not signal us")]
pub(crate) fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let seen = look();
        if seen.is_some() || start.elapsed() >= limit {
            return seen;
        }
        std::thread::sleep(STEP);
    }
}
