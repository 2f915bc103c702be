//! What went through a proxy, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// What went through since the start or the last reset.
///
/// A request is counted when the proxy passes it on, its answer before the client gets it: whoever
/// has the answer finds everything counted that led to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocking round trips: a Sync or a simple query which the server answered with `ReadyForQuery`.
    /// The opening of a connection is not among them, nor is its end.
    pub round_trips: u64,
    /// How often the network's delay was felt: requests that were sent together and answered
    /// together count once, so this is at most `round_trips` where nobody copies or flushes.
    /// A client that sends on without waiting makes it depend on chance.
    pub waits: u64,
    /// Simple queries.
    pub queries: u64,
    /// Statements that were sent to be parsed; a statement that the client has prepared is not.
    pub parses: u64,
    /// Executions of parsed statements.
    pub executes: u64,
    /// Connections that asked for a session.
    pub connections: u64,
}

impl Counts {
    /// Statements that were run: simple queries and executions.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.queries + self.executes
    }
}

/// Counts that are still being counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) round_trips: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) queries: AtomicU64,
    pub(super) parses: AtomicU64,
    pub(super) executes: AtomicU64,
    pub(super) connections: AtomicU64,
}

impl Tally {
    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        Counts {
            round_trips: read(&self.round_trips),
            waits: read(&self.waits),
            queries: read(&self.queries),
            parses: read(&self.parses),
            executes: read(&self.executes),
            connections: read(&self.connections),
        }
    }

    pub(super) fn reset(&self) {
        let Self { round_trips, waits, queries, parses, executes, connections } = self;
        for counter in [round_trips, waits, queries, parses, executes, connections] {
            counter.store(0, Ordering::Release);
        }
    }
}

/// One of the counters.
pub(super) type Counter = fn(&Tally) -> &AtomicU64;

/// Counts one more in each of the tallies.
pub(super) fn count(tallies: [&Tally; 2], counter: Counter) {
    for tally in tallies {
        counter(tally).fetch_add(1, Ordering::Release);
    }
}
