//! How a runner works.

use std::time::Duration;

use crate::error::StartError;

/// How a runner works. Each setting can be left as it is.
#[derive(Clone, Debug)]
pub struct RunnerSettings {
    pub(crate) batch_events_max: usize,
    pub(crate) poll_min: Duration,
    pub(crate) poll_max: Duration,
    pub(crate) lease_ttl: Duration,
    pub(crate) attempts_max: u32,
    pub(crate) parked_max: usize,
}

impl Default for RunnerSettings {
    fn default() -> Self {
        Self {
            batch_events_max: 500,
            poll_min: Duration::from_millis(5),
            poll_max: Duration::from_millis(500),
            lease_ttl: Duration::from_secs(15),
            attempts_max: 5,
            parked_max: 100,
        }
    }
}

impl RunnerSettings {
    /// Events that one step takes in at most. Default 500, from 1 to 100,000. More makes rebuilding
    /// faster; on SQLite commands wait as long as a step lasts.
    #[must_use]
    pub fn batch_events_max(mut self, events: usize) -> Self {
        self.batch_events_max = events;
        self
    }

    /// How soon, and how rarely at last, the log is looked at while nothing comes. Commits of this
    /// process wake a follower at once, so this is how late those of others are seen. Default 5 ms
    /// and 500 ms, from 1 ms to 1 min; shorter means more reads of an idle database.
    #[must_use]
    pub fn poll(mut self, min: Duration, max: Duration) -> Self {
        (self.poll_min, self.poll_max) = (min, max);
        self
    }

    /// How long a partition stays with a runner that says nothing any more. Default 15 s, from 1 s
    /// to 10 min; shorter means faster takeover, and more writes: it is renewed thrice in that time.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// How often a projection is shown an event on which it fails, before its stream is parked.
    /// Default 5, from 1 to 100; the pauses between are 10 ms, and double each time.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// How many streams of a projection may be parked. With more, it stands still instead: then
    /// rather the projection is broken than its events. Partitions that park at the same moment may
    /// exceed it by one each. Default 100, from 0 (never park) to 10,000.
    #[must_use]
    pub fn parked_max(mut self, streams: usize) -> Self {
        self.parked_max = streams;
        self
    }

    pub(crate) fn check(&self) -> Result<(), StartError> {
        const MINUTE: Duration = Duration::from_secs(60);
        let millisecond = Duration::from_millis(1);
        let wrong = |setting, range| Err(StartError::Setting { setting, range });
        if !(1..=100_000).contains(&self.batch_events_max) {
            return wrong("batch_events_max", "1 to 100,000");
        }
        if self.poll_min < millisecond || self.poll_min > self.poll_max || self.poll_max > MINUTE {
            return wrong("poll", "1 ms to 1 min, the first no longer than the second");
        }
        if !(Duration::from_secs(1)..=MINUTE * 10).contains(&self.lease_ttl) {
            return wrong("lease_ttl", "1 s to 10 min");
        }
        if !(1..=100).contains(&self.attempts_max) {
            return wrong("attempts_max", "1 to 100");
        }
        if self.parked_max > 10_000 {
            return wrong("parked_max", "0 to 10,000");
        }
        Ok(())
    }
}
