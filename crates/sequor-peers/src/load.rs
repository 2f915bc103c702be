//! Callers in a closed loop, and what they see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::cpu;
use crate::peer::{Accounts, Failure, account, new_id};
use crate::stage::ACCOUNTS;

/// What the callers do, each again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Open a new account.
    Create,
    /// Pay into one of the accounts, in no order.
    Deposit,
    /// The same, where nobody remembers accounts from one command to the next.
    Cold,
    /// Pay into the same account, all of them.
    Hot,
}

/// How hard to press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) work: Work,
    pub(crate) callers: usize,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figure {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// Tries that somebody else was faster than; each was followed by another.
    pub(crate) conflicts: u64,
    pub(crate) errors: u64,
    /// Processor time of client and server for each command that was done.
    pub(crate) cpu: Duration,
}

impl Figure {
    /// Of a measurement that came to nothing.
    pub(crate) fn failed() -> Self {
        Self { errors: 1, ..Self::default() }
    }
}

impl Load {
    /// Lets every caller work until time is up. A call lasts until it succeeds or fails: the tries
    /// that end in a conflict are a part of it.
    pub(crate) async fn drive(
        self,
        accounts: &Arc<dyn Accounts>,
        server: Option<u32>,
        duration: Duration,
    ) -> Result<Figure> {
        let cpu_before = cpu::used(server);
        let start = Instant::now();
        let end = start + duration;
        let numbers = Arc::new(AtomicU64::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..self.callers {
            let caller = Caller {
                accounts: Arc::clone(accounts),
                numbers: Arc::clone(&numbers),
                work: self.work,
                seen: Seen::new()?,
            };
            callers.spawn(caller.call_until(end));
        }
        let mut all = Seen::new()?;
        while let Some(caller) = callers.join_next().await {
            all.add(&caller?)?;
        }
        let took = start.elapsed();
        Ok(all.figure(took, cpu::used(server).saturating_sub(cpu_before)))
    }
}

struct Caller {
    accounts: Arc<dyn Accounts>,
    numbers: Arc<AtomicU64>,
    work: Work,
    seen: Seen,
}

impl Caller {
    async fn call_until(mut self, end: Instant) -> Seen {
        let mut before = Instant::now();
        while before < end {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let done = self.call(number, end).await;
            let after = Instant::now();
            match done {
                Ok(()) => self.seen.latency(after - before),
                Err(Failure::Conflict) => {}
                Err(Failure::Other(error)) => self.seen.error(&error),
            }
            before = after;
        }
        self.seen
    }

    async fn call(&mut self, number: u64, end: Instant) -> Result<(), Failure> {
        let wanted = match self.work {
            Work::Create => new_id(),
            Work::Deposit | Work::Cold => account(scatter(number) % ACCOUNTS),
            Work::Hot => account(0),
        };
        loop {
            let done = match self.work {
                Work::Create => self.accounts.create(wanted).await,
                Work::Deposit | Work::Cold | Work::Hot => self.accounts.deposit(wanted).await,
            };
            if !matches!(done, Err(Failure::Conflict)) {
                return done;
            }
            self.seen.conflicts += 1;
            if Instant::now() >= end {
                return done;
            }
        }
    }
}

/// Maps numbers to numbers without order, one to one (the finaliser of splitmix64).
fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

struct Seen {
    latencies: Histogram<u64>,
    conflicts: u64,
    errors: u64,
}

impl Seen {
    fn new() -> Result<Self> {
        let latencies = Histogram::new_with_bounds(100, 60_000_000_000, 3)?;
        Ok(Self { latencies, conflicts: 0, errors: 0 })
    }

    fn latency(&mut self, latency: Duration) {
        self.latencies.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    fn error(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        if self.errors == 1 {
            eprintln!("  first error of a caller: {error:#}");
        }
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.conflicts += other.conflicts;
        self.errors += other.errors;
        Ok(())
    }

    fn figure(&self, took: Duration, cpu: Duration) -> Figure {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
        let calls = self.latencies.len() as f64;
        let at = |quantile| Duration::from_nanos(self.latencies.value_at_quantile(quantile));
        Figure {
            per_second: calls / took.as_secs_f64(),
            p50: at(0.5),
            p99: at(0.99),
            conflicts: self.conflicts,
            errors: self.errors,
            cpu: Duration::from_secs_f64(cpu.as_secs_f64() / calls.max(1.0)),
        }
    }
}
