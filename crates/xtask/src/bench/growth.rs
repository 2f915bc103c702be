//! What stored keys cost: the same load on a file with a thousand keys and one with a million.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use sequor::sqlite::SqliteStore;

use super::domain::{Keys, service};
use super::load::Load;
use super::raw;
use super::report::{Report, median, rate, ratio, table};
use super::suite::Deposits;

const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
const ROUNDS: usize = 3;

/// Measures both kinds of keys, alternating between the small and the large file.
pub(super) async fn run(report: &mut Report, load: Load) -> Result<()> {
    let mut rows = Vec::new();
    for (keys, name) in [(Keys::TimeOrdered, "time-ordered"), (Keys::Random, "random")] {
        let folder = tempfile::tempdir()?;
        let (small, large) = (folder.path().join("few.db"), folder.path().join("many.db"));
        fill(&small, keys, FEW).await?;
        fill(&large, keys, MANY).await?;
        let (mut few, mut many) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            few.push(measure(&small, keys, load, round).await?);
            many.push(measure(&large, keys, load, round).await?);
        }
        let (few, many) = (median(few), median(many));
        rows.push(vec![name.to_owned(), ratio(few, many), rate(few), rate(many)]);
    }
    report.add(
        "Stored keys, from a thousand to a million",
        "Keyed deposits on SQLite by 32 callers, hot aggregates, synchronous=FULL: what a command \
         costs at 1,000,000 stored keys, in terms of its cost at 1,000. Median of three \
         alternating rounds.",
        table(&["keys", "cost", "at 1,000 /s", "at 1,000,000 /s"], rows),
    );
    Ok(())
}

async fn fill(path: &Path, keys: Keys, count: u64) -> Result<()> {
    let bar = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("  {spinner} {msg} {elapsed}")?)
        .with_message(format!("filling a file with {count} keys"));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    SqliteStore::open_path(path).await?.close().await;
    raw::fill(path, keys, count).await?;
    bar.finish_and_clear();
    Ok(())
}

async fn measure(path: &Path, keys: Keys, load: Load, round: usize) -> Result<f64> {
    let service = service(SqliteStore::open_path(path).await?, 10_000)?;
    // Numbers of their own for every round, above all that are stored.
    let numbers = Arc::new(AtomicU64::new(MANY * 10 * (u64::try_from(round)? + 1)));
    let work = Arc::new(Deposits { service: service.clone(), keys, accounts: 1_000 });
    let warm_up = Load { duration: load.duration / 4, ..load };
    warm_up.drive(&work, &numbers).await?;
    let figure = load.drive(&work, &numbers).await?;
    service.store().close().await;
    anyhow::ensure!(figure.errors == 0, "{} calls failed", figure.errors);
    Ok(figure.per_second)
}
