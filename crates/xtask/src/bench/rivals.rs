//! Many callers on one aggregate, beside as many on a thousand.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::Result;
use sequor::memory::MemoryStore;
use sequor::ports::Store;
use sequor::sqlite::SqliteStore;

use super::domain::{Keys, service};
use super::load::{Load, Work};
use super::report::{Report, median, rate, ratio, table};
use super::suite::{ACCOUNTS, Deposits};

const CALLERS: usize = 32;

/// Measures both, in turns.
pub(super) fn run(report: &mut Report, duration: Duration) -> Result<()> {
    let load = Load { callers: CALLERS, duration };
    let core = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cores = tokio::runtime::Runtime::new()?;
    let memory = async || Ok(MemoryStore::new());
    let folder = tempfile::tempdir()?;
    let mut files = 0;
    let sqlite = async || {
        files += 1;
        Ok(SqliteStore::open_path(folder.path().join(format!("{files}.db"))).await?)
    };
    let rows = vec![
        core.block_on(rivals("memory, one core", load, memory))?,
        cores.block_on(rivals("memory, two cores", load, memory))?,
        cores.block_on(rivals("SQLite, synchronous=FULL", load, sqlite))?,
    ];
    report.add(
        "One hot aggregate beside a thousand",
        "Keyed deposits by 32 callers, all on one account or spread over 1,000; accounts in the \
         bus's cache. Medians of three alternating rounds.",
        table(&["store", "one to 1,000", "one /s", "1,000 /s", "errors"], rows),
    );
    Ok(())
}

async fn rivals<S: Store>(
    name: &str,
    load: Load,
    mut open: impl AsyncFnMut() -> Result<S>,
) -> Result<Vec<String>> {
    let (mut one, mut many, mut errors) = (Vec::new(), Vec::new(), 0);
    for _ in 0..3 {
        for (seen, accounts) in [(&mut one, 1), (&mut many, ACCOUNTS)] {
            let work = Deposits {
                service: service(open().await?, 10_000)?,
                keys: Keys::TimeOrdered,
                accounts,
            };
            let figure = warm(load, Arc::new(work)).await?;
            seen.push(figure.per_second);
            errors += figure.errors;
        }
    }
    let (one, many) = (median(one), median(many));
    Ok(vec![name.to_owned(), ratio(one, many), rate(one), rate(many), errors.to_string()])
}

/// A quarter of the time to warm up, and then the measurement.
async fn warm(load: Load, work: Arc<impl Work>) -> Result<super::load::Figure> {
    let numbers = Arc::new(AtomicU64::new(0));
    Load { duration: load.duration / 4, ..load }.drive(&work, &numbers).await?;
    load.drive(&work, &numbers).await
}
