//! A store that is watched: it counts calls, can be held at a gate, and fails when told to.

mod follow;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sequor::ports::{
    CommitCommand, History, HistoryRequest, ReadHistory, ReadLog, Store, Submitted, Transact,
    Transaction,
};
use sequor::{
    Commit, Epoch, IdempotencyKey, Partition, Position, Projections, Record, StoreError,
    StoredEvent, StreamId, TenantId, async_trait,
};
use tokio::sync::{Semaphore, watch};

use crate::home::{Ground, Home};

/// A store that is watched.
#[derive(Clone)]
pub(crate) struct Watched<S> {
    pub(crate) inner: S,
    pub(crate) watch: Arc<Watch>,
    _ground: Ground,
}

/// What a store is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    History,
    Commit,
    /// The way back of a commit, once it was judged.
    Answer,
    Begin,
    /// A read in an open transaction.
    Read,
    /// A write into an open transaction.
    Write,
}

/// What is seen, and what is in the way.
pub(crate) struct Watch {
    histories: AtomicUsize,
    commits: AtomicUsize,
    begins: AtomicUsize,
    /// Transactions that are open now.
    open: AtomicUsize,
    /// Calls of the store, and not of its transaction, while a transaction was open.
    second_connections: AtomicUsize,
    /// Calls that stand at a closed gate, or have passed it since it was closed.
    arrived: watch::Sender<usize>,
    loses_answer: AtomicBool,
    /// Streams that transactions were asked to hold.
    held: Mutex<Vec<StreamId>>,
    gate: Mutex<Option<(Door, Arc<Semaphore>)>>,
    /// Which call fails: how many of its door pass before.
    faults: Mutex<VecDeque<(Door, usize, StoreError)>>,
}

impl<S> Watched<S> {
    pub(crate) fn over(inner: S, ground: Ground) -> Self {
        let watch = Watch {
            histories: AtomicUsize::new(0),
            commits: AtomicUsize::new(0),
            begins: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            second_connections: AtomicUsize::new(0),
            arrived: watch::Sender::new(0),
            loses_answer: AtomicBool::new(false),
            held: Mutex::default(),
            gate: Mutex::new(None),
            faults: Mutex::default(),
        };
        Self { inner, watch: Arc::new(watch), _ground: ground }
    }
}

impl Watch {
    /// Calls of a door so far.
    pub(crate) fn calls(&self, door: Door) -> usize {
        match door {
            Door::History => self.histories.load(Ordering::SeqCst),
            Door::Commit => self.commits.load(Ordering::SeqCst),
            Door::Begin => self.begins.load(Ordering::SeqCst),
            Door::Answer | Door::Read | Door::Write => 0,
        }
    }

    pub(crate) fn second_connections(&self) -> usize {
        self.second_connections.load(Ordering::SeqCst)
    }

    /// Streams that transactions were asked to hold so far.
    pub(crate) fn held(&self) -> Vec<StreamId> {
        self.held.lock().unwrap().clone()
    }

    /// From now on calls of this door wait.
    pub(crate) fn close_gate(&self, door: Door) {
        self.arrived.send_replace(0);
        *self.gate.lock().unwrap() = Some((door, Arc::new(Semaphore::new(0))));
    }

    /// Lets everybody pass.
    pub(crate) fn open_gate(&self) {
        if let Some((_, gate)) = self.gate.lock().unwrap().take() {
            gate.add_permits(1_000_000);
        }
    }

    /// Waits until so many calls have come to the gate.
    pub(crate) async fn at_gate(&self, calls: usize) {
        self.arrived.subscribe().wait_for(|arrived| *arrived >= calls).await.unwrap();
    }

    /// The next calls of this door fail.
    pub(crate) fn fail(&self, door: Door, errors: impl IntoIterator<Item = StoreError>) {
        errors.into_iter().for_each(|error| self.fail_after(door, 0, error));
    }

    /// A call of this door fails, after some that pass.
    pub(crate) fn fail_after(&self, door: Door, passes: usize, error: StoreError) {
        self.faults.lock().unwrap().push_back((door, passes, error));
    }

    /// The connection is lost while the next commit comes back.
    pub(crate) fn lose_next_answer(&self) {
        self.loses_answer.store(true, Ordering::SeqCst);
    }

    async fn pass(&self, door: Door) -> Result<(), StoreError> {
        self.count(door);
        let gate = self.gate.lock().unwrap().clone();
        if let Some((_, gate)) = gate.filter(|(closed, _)| *closed == door) {
            self.arrived.send_modify(|arrived| *arrived += 1);
            gate.acquire().await.unwrap().forget();
        }
        self.fault(door)
    }

    fn count(&self, door: Door) {
        let count = match door {
            Door::History => &self.histories,
            Door::Commit => &self.commits,
            Door::Begin => &self.begins,
            Door::Answer | Door::Read | Door::Write => return,
        };
        count.fetch_add(1, Ordering::SeqCst);
        if self.open.load(Ordering::SeqCst) > 0 {
            self.second_connections.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn fault(&self, door: Door) -> Result<(), StoreError> {
        let mut faults = self.faults.lock().unwrap();
        let Some((_, passes, _)) = faults.front_mut().filter(|(at, ..)| *at == door) else {
            return Ok(());
        };
        if *passes > 0 {
            *passes -= 1;
            return Ok(());
        }
        faults.pop_front().map_or(Ok(()), |(.., error)| Err(error))
    }
}

#[async_trait]
impl<S: Home> ReadHistory for Watched<S> {
    async fn history(&self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        self.watch.pass(Door::History).await?;
        self.inner.history(request).await
    }
}

#[async_trait]
impl<S: Home> CommitCommand for Watched<S> {
    async fn submit(
        &self,
        commit: Commit,
        projections: &Projections<Self::Connection>,
    ) -> Result<Submitted, StoreError> {
        self.watch.pass(Door::Commit).await?;
        let submitted = self.inner.submit(commit, projections).await?;
        let watch = Arc::clone(&self.watch);
        Ok(Submitted::new(async move {
            let committed = submitted.await;
            watch.pass(Door::Answer).await?;
            match watch.loses_answer.swap(false, Ordering::SeqCst) {
                true => Err(StoreError::Unknown),
                false => committed,
            }
        }))
    }
}

#[async_trait]
impl<S: Home> ReadLog for Watched<S> {
    async fn read_after(
        &self,
        partition: Partition,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.inner.read_after(partition, after, limit).await
    }
}

impl<S: Home> Store for Watched<S> {
    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn partition(&self, tenant: TenantId) -> Partition {
        self.inner.partition(tenant)
    }
}

#[async_trait]
impl<S: Home> Transact for Watched<S> {
    type Connection = S::Connection;
    type Transaction = WatchedTransaction<S::Transaction>;

    async fn begin(&self, tenant: TenantId) -> Result<Self::Transaction, StoreError> {
        self.watch.pass(Door::Begin).await?;
        let inner = self.inner.begin(tenant).await?;
        self.watch.open.fetch_add(1, Ordering::SeqCst);
        Ok(WatchedTransaction { inner, open: Open(Arc::clone(&self.watch)) })
    }
}

/// A transaction of a watched store.
pub(crate) struct WatchedTransaction<T> {
    inner: T,
    open: Open,
}

/// A transaction counts as open as long as this lives.
struct Open(Arc<Watch>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl<T: Transaction> Transaction for WatchedTransaction<T> {
    type Connection = T::Connection;

    async fn claim(
        &mut self,
        tenant: TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, StoreError> {
        self.inner.claim(tenant, key).await
    }

    async fn hold(&mut self, stream: &StreamId) -> Result<(), StoreError> {
        self.open.0.held.lock().unwrap().push(stream.clone());
        self.inner.hold(stream).await
    }

    async fn history(&mut self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        self.open.0.pass(Door::Read).await?;
        self.inner.history(request).await
    }

    fn connection(&mut self) -> &mut Self::Connection {
        self.inner.connection()
    }

    fn own_rows_failed(&self, error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
        self.inner.own_rows_failed(error)
    }

    async fn write(
        &mut self,
        commit: Commit,
        projections: &Projections<Self::Connection>,
    ) -> Result<(), StoreError> {
        self.open.0.pass(Door::Write).await?;
        self.inner.write(commit, projections).await
    }

    async fn commit(self) -> Result<Vec<Record>, StoreError> {
        self.inner.commit().await
    }
}

impl<S> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}
