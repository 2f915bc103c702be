//! The handle of a store.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sequor_core::leases::Leases;
use sequor_core::ports::{Follow, Listeners, Store, Transaction, Wake};
use sequor_core::{Epoch, Partition, StoreError, TenantId};
use tokio::sync::{mpsc, oneshot};

use crate::error::{OpenError, store_error};
use crate::open;
use crate::readers::Readers;
use crate::settings::SqliteSettings;
use crate::writer::Request;

/// A store in one SQLite file. Cheap to clone; all clones share one writer.
///
/// Open it inside a tokio runtime: the writer is a task of it. The file is released when the store
/// is closed, or after its last clone is dropped.
///
/// ```
/// use sequor_sqlite::{SqliteSettings, SqliteStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("billing.db");
/// let store = SqliteStore::open_path(&path).await?;
/// assert!(SqliteStore::open_path(&path).await.is_err(), "one bus a file");
/// store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: mpsc::Sender<Request>,
    readers: Readers,
    epoch: Epoch,
    writer_wait_max: Duration,
    stats: Arc<Counts>,
    /// How many commits are under way.
    company: Arc<AtomicUsize>,
    leases: Mutex<Leases>,
    listeners: Arc<Listeners>,
}

/// What a store is made of.
#[derive(Debug)]
pub(crate) struct StoreParts {
    pub(crate) queue: mpsc::Sender<Request>,
    pub(crate) readers: Readers,
    pub(crate) epoch: Epoch,
    pub(crate) stats: Arc<Counts>,
    pub(crate) listeners: Arc<Listeners>,
}

impl SqliteStore {
    /// Opens a file, creates it with its tables if it is missing, and takes it for this process.
    ///
    /// # Errors
    /// [`OpenError`] says what is in the way: [`OpenError::InUse`] names the other bus's lock.
    ///
    /// # Cancellation
    /// Dropping the future lets go of the file; it may have been created.
    pub async fn open(settings: SqliteSettings) -> Result<Self, OpenError> {
        let writer_wait_max = settings.writer_wait_max;
        let StoreParts { queue, readers, epoch, stats, listeners } = open::open(settings).await?;
        let shared = Shared {
            queue,
            readers,
            epoch,
            writer_wait_max,
            stats,
            company: Arc::default(),
            leases: Mutex::default(),
            listeners,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Opens a file with the default settings.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    ///
    /// # Cancellation
    /// As [`SqliteStore::open`].
    pub async fn open_path(path: impl AsRef<std::path::Path>) -> Result<Self, OpenError> {
        Self::open(SqliteSettings::new(path.as_ref())).await
    }

    /// Runs statements of your own in one transaction, such as the `CREATE TABLE IF NOT EXISTS` of an
    /// inline projection, before commands need what they make.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with SQLite's message when a statement is wrong,
    /// [`StoreError::Busy`] or [`StoreError::Unavailable`]; nothing was changed.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing, or all of it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = sequor_sqlite::SqliteStore::open_path(folder.path().join("billing.db")).await?;
    /// store.set_up("CREATE TABLE IF NOT EXISTS balances (account TEXT PRIMARY KEY, cents INTEGER)").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_up(&self, sql: &'static str) -> Result<(), StoreError> {
        let mut transaction = self.begin_for(None).await?;
        sqlx::raw_sql(sql).execute(transaction.connection()).await.map_err(store_error)?;
        transaction.commit().await.map(drop)
    }

    /// Finishes what is queued, closes the file and lets go of it. Later calls, of any clone,
    /// answer `Unavailable`.
    ///
    /// # Cancellation
    /// Dropping the future does not stop the closing.
    pub async fn close(&self) {
        let shared = Arc::clone(&self.shared);
        // A task of its own, so that a caller who gives up waiting leaves nothing half closed.
        let closing = tokio::spawn(async move {
            let (answer, answered) = oneshot::channel();
            if shared.queue.send(Request::Close(answer)).await.is_ok() {
                answered.await.ok();
            }
            shared.readers.close().await;
        });
        closing.await.ok();
    }

    /// What the writer has done since the store was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let counts = &self.shared.stats;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Stats {
            commits: read(&counts.commits),
            replays: read(&counts.replays),
            batches: read(&counts.batches),
            batched_commits: read(&counts.batched_commits),
            transactions: read(&counts.transactions),
            alone: read(&counts.alone),
        }
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.shared.readers
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.stats
    }

    pub(crate) fn leases(&self) -> MutexGuard<'_, Leases> {
        self.shared.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the commits that are under way, until dropped.
    pub(crate) fn enter(&self) -> Company {
        let all = Arc::clone(&self.shared.company);
        let others = all.fetch_add(1, Ordering::Relaxed);
        Company { all, others }
    }

    pub(crate) fn writer_wait_max(&self) -> Duration {
        self.shared.writer_wait_max
    }

    pub(crate) async fn send(&self, request: Request) -> Result<(), StoreError> {
        let sent = self.shared.queue.send(request).await;
        sent.map_err(|_| StoreError::unavailable("the store is closed"))
    }
}

/// A commit among those that are under way.
#[derive(Debug)]
pub(crate) struct Company {
    all: Arc<AtomicUsize>,
    others: usize,
}

impl Company {
    /// Whether no other commit was under way when this one came.
    pub(crate) fn is_alone(&self) -> bool {
        self.others == 0
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Store for SqliteStore {
    fn epoch(&self) -> Epoch {
        self.shared.epoch
    }

    fn partition(&self, _: TenantId) -> Partition {
        Partition::ONLY
    }
}

impl Wake for SqliteStore {
    fn listeners(&self) -> &Listeners {
        &self.shared.listeners
    }
}

impl Follow for SqliteStore {
    fn partitions(&self) -> Vec<Partition> {
        vec![Partition::ONLY]
    }
}

/// What the writer has done since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Commits that became true in a batch or alone (not those of open transactions).
    pub commits: u64,
    /// Commits whose key was known.
    pub replays: u64,
    /// Batches, of one commit or more.
    pub batches: u64,
    /// Commits in these batches.
    pub batched_commits: u64,
    /// Transactions that were begun.
    pub transactions: u64,
    /// Commits that went alone because something in their batch failed.
    pub alone: u64,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    commits: AtomicU64,
    replays: AtomicU64,
    batches: AtomicU64,
    batched_commits: AtomicU64,
    transactions: AtomicU64,
    alone: AtomicU64,
}

impl Counts {
    pub(crate) fn fresh(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn replay(&self) {
        self.replays.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn batch(&self, commits: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        let commits = u64::try_from(commits).unwrap_or(u64::MAX);
        self.batched_commits.fetch_add(commits, Ordering::Relaxed);
    }

    pub(crate) fn transaction(&self) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn alone(&self) {
        self.alone.fetch_add(1, Ordering::Relaxed);
    }
}
