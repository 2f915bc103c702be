//! Callers in a closed loop, and what they see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

/// How hard to press.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) callers: usize,
    pub(super) duration: Duration,
}

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) per_second: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) errors: u64,
}

/// Something to do, given its number.
pub(super) trait Work: Send + Sync + 'static {
    /// Does it once.
    fn run(&self, number: u64) -> impl Future<Output = Result<()>> + Send;
}

impl Load {
    /// Lets every caller work until time is up; numbers go on from `numbers`.
    pub(super) async fn drive<W: Work>(
        self,
        work: &Arc<W>,
        numbers: &Arc<AtomicU64>,
    ) -> Result<Figure> {
        let start = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..self.callers {
            let (work, numbers) = (Arc::clone(work), Arc::clone(numbers));
            callers.spawn(call_until(start + self.duration, work, numbers));
        }
        let (mut all, mut errors) = (histogram()?, 0);
        while let Some(caller) = callers.join_next().await {
            let (seen, failed) = caller??;
            all.add(&seen)?;
            errors += failed;
        }
        let seconds = start.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
        let calls = all.len() as f64;
        let at = |quantile| Duration::from_nanos(all.value_at_quantile(quantile));
        Ok(Figure { per_second: calls / seconds, p50: at(0.5), p99: at(0.99), errors })
    }
}

async fn call_until(
    end: Instant,
    work: Arc<impl Work>,
    numbers: Arc<AtomicU64>,
) -> Result<(Histogram<u64>, u64)> {
    let (mut seen, mut errors) = (histogram()?, 0);
    let mut before = Instant::now();
    while before < end {
        let done = work.run(numbers.fetch_add(1, Ordering::Relaxed)).await;
        let after = Instant::now();
        match done {
            Ok(()) => seen.saturating_record(nanos(after - before)),
            Err(error) => {
                errors += 1;
                if errors == 1 {
                    eprintln!("  first error: {error:#}");
                }
            }
        }
        before = after;
    }
    Ok((seen, errors))
}

fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(100, 60_000_000_000, 3)?)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
