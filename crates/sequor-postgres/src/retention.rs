//! Keys past their retention: moved to the archive in small batches, exported month by month,
//! dropped.

use std::io::Write;
use std::time::Duration;

use sequor_core::{StoreError, Timestamp};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::connection::Session;
use crate::error::{kept_month, store_error};
use crate::row;
use crate::store::PostgresStore;

/// How the reaper works. What is out of its range counts as the nearest value within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaperSettings {
    /// The pause after a pass that has left nothing. Default 1 min, 1 s to 1 day; a longer one lets
    /// the table of keys grow in the meantime.
    pub pause: Duration,
    /// Keys in one transaction at most. Default 1,000, 1 to 100,000; larger ones hold their locks
    /// longer and are no faster.
    pub batch_keys_max: u32,
}

impl Default for ReaperSettings {
    fn default() -> Self {
        Self { pause: Duration::from_secs(60), batch_keys_max: 1_000 }
    }
}

/// A month of archived keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMonth {
    /// Such as `2026-11`, by the time of archiving, in UTC.
    pub month: String,
    /// How many keys it holds.
    pub keys: u64,
    /// Of all its rows, in any order.
    pub(crate) digest: i64,
}

/// A month that was written out: what lets it be dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// What it held.
    pub month: ArchiveMonth,
    /// SHA-256 of the lines before the last one, in hexadecimal; the last line holds it too.
    pub sha256: String,
}

/// What became of a month that was to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a month that was not dropped is still there"]
#[non_exhaustive]
pub enum MonthDrop {
    /// It is gone.
    Dropped,
    /// It is not over, by the database's clock, and stays: drop it when it is.
    NotOver,
    /// It holds something else than was exported, and stays: export it again.
    Changed,
    /// There is none, for it was dropped before.
    Missing,
}

/// A line of an export.
#[derive(Debug, Serialize)]
pub(crate) struct ArchivedKey {
    pub(crate) tenant_id: Uuid,
    pub(crate) key: String,
    pub(crate) command_id: Uuid,
    pub(crate) claimed_at: Timestamp,
    pub(crate) archived_at: Timestamp,
}

/// The last line of an export.
#[derive(Debug, Serialize)]
struct Trailer<'e> {
    month: &'e str,
    keys: u64,
    sha256: &'e str,
}

/// How many keys are read at a time.
const PAGE: i32 = 1_000;

impl PostgresStore {
    /// Moves one batch of keys that are past their retention to the archive, the oldest first, and
    /// says how many: fewer than asked for when nothing is left. The retention is the database's
    /// (`sequor.keep_keys`, 90 days by default), and so is the clock. Several reapers, and commands
    /// in between, do not wait for each other.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], also where the role is no member of `sequor_system`.
    ///
    /// # Cancellation
    /// The batch is moved whole, or not at all.
    pub async fn reap_keys(&self, batch_keys_max: u32) -> Result<u64, StoreError> {
        let mut loan = self.pool().lend().await?;
        let reaped = reap(loan.session(), batch_keys_max).await;
        loan.give_back(&reaped);
        reaped
    }

    /// Reaps for ever: batch after batch, then a pause. Trouble is logged, and tried again after the
    /// pause. Run it as a task of one process or of all.
    ///
    /// # Cancellation
    /// Dropping the future stops it; a batch under way is moved whole, or not at all.
    pub async fn run_reaper(&self, settings: ReaperSettings) {
        let pause = settings.pause.clamp(Duration::from_secs(1), Duration::from_secs(86_400));
        let batch_keys_max = settings.batch_keys_max.clamp(1, 100_000);
        loop {
            match self.reap_keys(batch_keys_max).await {
                Ok(keys) if keys >= u64::from(batch_keys_max) => continue,
                Ok(keys) => tracing::debug!(keys, "reaped"),
                Err(error) => tracing::warn!(%error, "reaping failed; it is tried again"),
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// The months that are archived, the oldest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], also where the role is no member of `sequor_system`.
    pub async fn archive_months(&self) -> Result<Vec<ArchiveMonth>, StoreError> {
        let mut loan = self.pool().lend().await?;
        let months = read_months(loan.session()).await;
        loan.give_back(&months);
        months
    }

    /// Writes a month out as JSON lines, by tenant and key, and a last line with their SHA-256. It is
    /// read in pages of 1,000 keys, and written by the calling task, which blocks as long as `to` does.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], also when `to` cannot be written or the role is no member of
    /// `sequor_system`.
    ///
    /// # Cancellation
    /// The database is as it was; what was written is no export, since its last line is missing.
    pub async fn export_archive_month(
        &self,
        month: &ArchiveMonth,
        to: &mut (impl Write + Send),
    ) -> Result<Exported, StoreError> {
        let mut loan = self.pool().lend().await?;
        let exported = export(loan.session(), month, to).await;
        loan.give_back(&exported);
        exported
    }

    /// Drops a month that was exported, if it is over and still holds just that; else says why it
    /// stays. Afterwards a retry under one of its keys runs again.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when somebody looks into it at the moment, [`StoreError::Unavailable`];
    /// it stays then.
    ///
    /// # Cancellation
    /// It is dropped whole, or stays whole.
    pub async fn drop_archive_month(&self, exported: &Exported) -> Result<MonthDrop, StoreError> {
        let mut loan = self.pool().lend().await?;
        let dropped = drop_month(loan.session(), &exported.month).await;
        loan.give_back(&dropped);
        dropped
    }
}

async fn reap(session: &mut Session, batch_keys_max: u32) -> Result<u64, StoreError> {
    let count = i32::try_from(batch_keys_max).unwrap_or(i32::MAX);
    let reap = session.statement(include_str!("sql/reap_keys.sql")).bind(count);
    row::reaped(&reap.fetch_one(&mut session.postgres).await.map_err(store_error)?)
}

async fn read_months(session: &mut Session) -> Result<Vec<ArchiveMonth>, StoreError> {
    let read = session.statement(include_str!("sql/archive_months.sql"));
    let rows = read.fetch_all(&mut session.postgres).await.map_err(store_error)?;
    rows.iter().map(row::archive_month).collect()
}

async fn export(
    session: &mut Session,
    month: &ArchiveMonth,
    to: &mut (impl Write + Send),
) -> Result<Exported, StoreError> {
    let (mut digest, mut keys) = (Sha256::new(), 0);
    let mut after = (Uuid::nil(), String::new());
    loop {
        let page = read_page(session, &month.month, &after).await?;
        let Some(last) = page.last() else { break };
        after = (last.tenant_id, last.key.clone());
        for key in &page {
            let line = line(key)?;
            digest.update(&line);
            to.write_all(line.as_bytes()).map_err(StoreError::unavailable)?;
            keys += 1;
        }
    }
    let sha256: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let trailer = Trailer { month: &month.month, keys, sha256: &sha256 };
    to.write_all(line(&trailer)?.as_bytes()).map_err(StoreError::unavailable)?;
    to.flush().map_err(StoreError::unavailable)?;
    Ok(Exported { month: ArchiveMonth { keys, ..month.clone() }, sha256 })
}

fn line(of: &impl Serialize) -> Result<String, StoreError> {
    let json = serde_json::to_string(of).map_err(StoreError::unavailable)?;
    Ok(json + "\n")
}

async fn read_page(
    session: &mut Session,
    month: &str,
    after: &(Uuid, String),
) -> Result<Vec<ArchivedKey>, StoreError> {
    let rows = session
        .statement(include_str!("sql/read_archive.sql"))
        .bind(month)
        .bind(after.0)
        .bind(&after.1)
        .bind(PAGE)
        .fetch_all(&mut session.postgres)
        .await;
    rows.map_err(store_error)?.iter().map(row::archived_key).collect()
}

async fn drop_month(session: &mut Session, month: &ArchiveMonth) -> Result<MonthDrop, StoreError> {
    let drop = session
        .statement(include_str!("sql/drop_archive_month.sql"))
        .bind(&month.month)
        .bind(i64::try_from(month.keys).unwrap_or(i64::MAX))
        .bind(month.digest);
    match drop.execute(&mut session.postgres).await {
        Ok(()) => Ok(MonthDrop::Dropped),
        Err(error) => kept_month(&error).ok_or_else(|| store_error(error)),
    }
}
