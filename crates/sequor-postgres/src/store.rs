//! The handle of a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sequor_core::ports::{Follow, Listeners, Store, Wake};
use sequor_core::{Epoch, Partition, Position, StoreError, TenantId};
use sqlx::AssertSqlSafe;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connection::{Deadlocks, Session};
use crate::error::OpenError;
use crate::log::LogReaders;
use crate::open;
use crate::partitions::Partitions;
use crate::pool::Pool;
use crate::settings::PostgresSettings;
use crate::statement::Protocol;
use crate::transaction::{RESET_POOLED, clean};
use crate::writer::Writers;

/// A store in a PostgreSQL database. Cheap to clone; all clones share their sessions.
///
/// Open it inside a tokio runtime. The database must have sequor's tables: see
/// [`install`](crate::install).
///
/// ```no_run
/// use sequor_postgres::{PostgresStore, install};
///
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// install(&"postgres://owner@localhost/billing".parse()?).await?;
/// let store = PostgresStore::open("postgres://bus@localhost/billing".parse()?).await?;
/// store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    parts: StoreParts,
    wait_max: Duration,
    lock_wait_max: Duration,
    mark_wait_max: Duration,
    /// Steps of projections hold sessions of the pool: at most so many, that commands have some too.
    steps: Arc<Semaphore>,
}

/// What a store is made of.
#[derive(Debug)]
pub(crate) struct StoreParts {
    pub(crate) pool: Arc<Pool>,
    pub(crate) writers: Arc<Writers>,
    pub(crate) log_readers: LogReaders,
    pub(crate) deadlocks: Deadlocks,
    pub(crate) epoch: Epoch,
    pub(crate) partitions: Partitions,
}

impl PostgresStore {
    /// Opens the store that a database holds, and checks that it is fit: version, encoding, tables,
    /// rights, walls, positions, and that it is no standby.
    ///
    /// # Errors
    /// [`OpenError`] says what is in the way, and what to run.
    pub async fn open(settings: PostgresSettings) -> Result<Self, OpenError> {
        let (wait_max, lock_wait_max) = (settings.wait_max, settings.lock_wait_max);
        let mark_wait_max = settings.mark_wait_max;
        let steps = Arc::new(Semaphore::new((settings.connections_max / 2).max(1)));
        let parts = open::open(settings).await?;
        let shared = Shared { parts, wait_max, lock_wait_max, mark_wait_max, steps };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Runs statements of your own in one transaction, as the role of this store: such as the
    /// `CREATE TABLE IF NOT EXISTS` of an inline projection with its `SELECT sequor.wall('…')`.
    /// Settings that they change are gone afterwards.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the server's message when a statement is wrong,
    /// [`StoreError::Busy`] or [`StoreError::Unavailable`]; nothing was changed.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing, or all of it.
    pub async fn set_up(&self, sql: &'static str) -> Result<(), StoreError> {
        let mut loan = self.pool().lend().await?;
        let done = run_alone(loan.session(), sql).await;
        let cleaned = match &done {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Unknown)) => Err(error.clone()),
            Ok(()) | Err(_) => clean(loan.session()).await,
        };
        loan.give_back(&cleaned);
        done
    }

    /// Finishes what is under way, and closes the sessions. Later calls, of any clone, answer
    /// `Unavailable`.
    ///
    /// # Cancellation
    /// Dropping the future does not stop the closing.
    pub async fn close(&self) {
        let shared = Arc::clone(&self.shared);
        // A task of its own, so that a caller who gives up waiting leaves nothing half closed.
        let closing = tokio::spawn(async move {
            shared.parts.writers.close().await;
            shared.parts.log_readers.close().await;
            shared.parts.pool.close().await;
        });
        closing.await.ok();
    }

    /// What the store has done since it was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let counts = &self.shared.parts.writers.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Stats {
            commits: read(&counts.commits),
            replays: read(&counts.replays),
            batches: read(&counts.batches),
            batched_commits: read(&counts.batched_commits),
            transactions: read(&counts.transactions),
            alone: read(&counts.alone),
            deadlocks: self.deadlocks().count(),
        }
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.shared.parts.pool
    }

    pub(crate) fn writers(&self) -> &Arc<Writers> {
        &self.shared.parts.writers
    }

    pub(crate) fn log_readers(&self) -> &LogReaders {
        &self.shared.parts.log_readers
    }

    pub(crate) fn deadlocks(&self) -> &Deadlocks {
        &self.shared.parts.deadlocks
    }

    pub(crate) fn partitions(&self) -> &Partitions {
        &self.shared.parts.partitions
    }

    /// A turn to open a step.
    pub(crate) async fn step_turn(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let turn = Arc::clone(&self.shared.steps).acquire_owned();
        let turn = tokio::time::timeout(self.wait_max(), turn).await;
        turn.map_err(|_| StoreError::Busy)?
            .map_err(|_| StoreError::unavailable("the store is closed"))
    }

    /// Says that events of a partition up to here became true.
    pub(crate) fn announce(&self, partition: Partition, position: Option<Position>) {
        if let Some(position) = position {
            self.writers().listeners.committed(partition, position);
        }
    }

    pub(crate) fn wait_max(&self) -> Duration {
        self.shared.wait_max
    }

    pub(crate) fn lock_wait_max(&self) -> Duration {
        self.shared.lock_wait_max
    }

    pub(crate) fn mark_wait_max(&self) -> Duration {
        self.shared.mark_wait_max
    }
}

/// Several statements in one message are one transaction. Behind a pooler the session is left as it
/// was, within the same.
async fn run_alone(session: &mut Session, sql: &'static str) -> Result<(), StoreError> {
    let sql = match session.protocol {
        Protocol::Prepared => sqlx::raw_sql(sql),
        Protocol::Simple => sqlx::raw_sql(AssertSqlSafe(format!("{sql}\n;{RESET_POOLED}"))),
    };
    session.was_shared = true;
    let done = sql.execute(&mut session.postgres).await.map(drop);
    done.map_err(|error| session.failed(error))
}

impl Store for PostgresStore {
    fn epoch(&self) -> Epoch {
        self.shared.parts.epoch
    }

    fn partition(&self, tenant: TenantId) -> Partition {
        self.partitions().of(tenant)
    }
}

impl Wake for PostgresStore {
    fn listeners(&self) -> &Listeners {
        &self.writers().listeners
    }
}

impl Follow for PostgresStore {
    fn partitions(&self) -> Vec<Partition> {
        self.shared.parts.partitions.all().collect()
    }
}

/// What a store has done since it was opened.
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
    /// Calls that committed a batch, or one commit alone.
    pub transactions: u64,
    /// Commits that went alone, because something in their batch failed or a lock was in the way.
    pub alone: u64,
    /// Deadlocks and serialization failures of what handlers and projections do: the server has ended
    /// a statement of theirs, and their command is tried again. Own rows that are written in one order
    /// everywhere cause none.
    pub deadlocks: u64,
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
