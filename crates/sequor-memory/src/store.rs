//! The store as its users hold it: the content, and whose turn it is to write.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sequor_core::leases::Leases;
use sequor_core::ports::{Follow, Listeners, Store, Wake};
use sequor_core::{Epoch, Partition, Position, StoreError, TenantId};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard};
use tokio::time::timeout;
use uuid::Uuid;

use crate::content::Content;
use crate::tables::Tables;

/// A store in memory: exact, small, deterministic. Clones share one content.
///
/// One transaction is open at a time, as with SQLite's `BEGIN IMMEDIATE`: while it is, other
/// writers wait in order, and readers see what is committed.
///
/// ```
/// use sequor_memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// assert!(store.read(|tables| tables.get::<Vec<u8>>().is_none()));
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    writer_wait_max: Duration,
}

struct Shared {
    epoch: Epoch,
    /// Transactions take their turn alone, plain commits share one: these are short enough to
    /// queue at the content's own lock.
    turn: Arc<RwLock<()>>,
    /// Invariant: nobody else's code runs and nothing is awaited under this lock.
    content: Mutex<Content>,
    leases: Mutex<Leases>,
    listeners: Listeners,
}

impl MemoryStore {
    /// How long a writer waits for its turn, unless told otherwise.
    pub const WRITER_WAIT_MAX: Duration = Duration::from_secs(5);

    /// An empty store. Its epoch is derived from how many stores this process made before, so it
    /// differs within a process and is the same in every run.
    #[must_use]
    pub fn new() -> Self {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let name = format!("sequor-memory:{number}");
        Self::with_epoch(Epoch(Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())))
    }

    /// An empty store of a given epoch.
    #[must_use]
    pub fn with_epoch(epoch: Epoch) -> Self {
        let shared = Shared {
            epoch,
            turn: Arc::new(RwLock::new(())),
            content: Mutex::default(),
            leases: Mutex::default(),
            listeners: Listeners::default(),
        };
        Self { shared: Arc::new(shared), writer_wait_max: Self::WRITER_WAIT_MAX }
    }

    /// Sets how long a writer waits for an open transaction before it gets [`StoreError::Busy`].
    /// Default 5 s, from 0 (never wait) up; a longer wait hides handlers that take long. The
    /// setting is this handle's and that of its later clones.
    #[must_use]
    pub fn writer_wait_max(mut self, wait: Duration) -> Self {
        self.writer_wait_max = wait;
        self
    }

    /// Looks at the committed tables. What is committed meanwhile does not change them.
    pub fn read<R>(&self, look: impl FnOnce(&Tables) -> R) -> R {
        let tables = self.content().tables();
        look(&tables)
    }

    pub(crate) fn content(&self) -> MutexGuard<'_, Content> {
        self.shared.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn leases(&self) -> MutexGuard<'_, Leases> {
        self.shared.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that events up to here became true.
    pub(crate) fn announce(&self, position: Option<Position>) {
        if let Some(position) = position {
            self.shared.listeners.committed(Partition::ONLY, position);
        }
    }

    /// A turn that plain commits share, and that excludes an open transaction.
    pub(crate) async fn shared_turn(&self) -> Result<RwLockReadGuard<'_, ()>, StoreError> {
        if let Ok(turn) = self.shared.turn.try_read() {
            return Ok(turn);
        }
        timeout(self.writer_wait_max, self.shared.turn.read()).await.map_err(|_| StoreError::Busy)
    }

    /// A turn of its own.
    pub(crate) async fn own_turn(&self) -> Result<OwnedRwLockWriteGuard<()>, StoreError> {
        let turn = Arc::clone(&self.shared.turn);
        if let Ok(turn) = Arc::clone(&turn).try_write_owned() {
            return Ok(turn);
        }
        timeout(self.writer_wait_max, turn.write_owned()).await.map_err(|_| StoreError::Busy)
    }
}

impl Store for MemoryStore {
    fn epoch(&self) -> Epoch {
        self.shared.epoch
    }

    fn partition(&self, _: TenantId) -> Partition {
        Partition::ONLY
    }
}

impl Wake for MemoryStore {
    fn listeners(&self) -> &Listeners {
        &self.shared.listeners
    }
}

impl Follow for MemoryStore {
    fn partitions(&self) -> Vec<Partition> {
        vec![Partition::ONLY]
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("epoch", &self.shared.epoch)
            .field("writer_wait_max", &self.writer_wait_max)
            .finish_non_exhaustive()
    }
}
