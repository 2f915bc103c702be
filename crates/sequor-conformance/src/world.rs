//! A store under trial, with the questions that behaviours ask of it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use sequor_core::ports::{
    CommitCommand, Committed, HistoryRequest, ReadHistory, ReadLog, Store, Transact, Transaction,
};
use sequor_core::{
    Commit, IdempotencyKey, Position, Projection, Projections, Record, StoreError, StoredEvent,
    StreamId, TenantId, Version,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::{Connection, Harness, Tally};
use crate::sample::projections::Fragile;

/// A harness with a fresh store of its own.
pub(crate) struct World<H: Harness> {
    pub(crate) harness: Arc<H>,
    pub(crate) store: Arc<H::Store>,
}

/// A transaction of the harness's store.
pub(crate) type Open<H> = <<H as Harness>::Store as Transact>::Transaction;

impl<H: Harness> World<H> {
    pub(crate) async fn new(harness: Arc<H>) -> Self {
        let store = Arc::new(harness.fresh().await);
        Self { harness, store }
    }

    /// The same content in a store that was closed and opened.
    pub(crate) async fn reopened(self) -> Self {
        let store = Arc::into_inner(self.store).expect("nobody else holds the store");
        let store = Arc::new(self.harness.reopen(store).await);
        Self { harness: self.harness, store }
    }

    /// Commits without projections.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.store.commit(commit, &Projections::none()).await
    }

    /// Commits with the counting projection.
    pub(crate) async fn commit_counted(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.store.commit(commit, &self.counting()).await
    }

    /// The projection that counts each event for its tenant, fails on `DOOMED` and panics on
    /// `PANICKING` after it has counted them.
    pub(crate) fn counting(&self) -> Projections<Connection<H>> {
        self.projections([Arc::new(Fragile(Arc::clone(&self.harness))) as _])
    }

    pub(crate) fn projections<const N: usize>(
        &self,
        projections: [Arc<dyn Projection<Connection<H>>>; N],
    ) -> Projections<Connection<H>> {
        Projections(Arc::new(projections))
    }

    /// Commits what must be fresh.
    #[track_caller]
    pub(crate) fn fresh(&self, commit: Commit) -> impl Future<Output = Record> + Send {
        let store = Arc::clone(&self.store);
        async move { fresh(store.commit(commit, &Projections::none()).await) }
    }

    /// Commits what must be known.
    pub(crate) async fn known(&self, commit: Commit) -> Record {
        known(self.commit(commit).await)
    }

    /// Commits what must be refused.
    pub(crate) async fn refused(&self, commit: Commit) -> StoreError {
        match self.commit(commit).await {
            Err(error) => error,
            Ok(committed) => panic!("must be refused, but: {committed:?}"),
        }
    }

    /// What is remembered under a key.
    pub(crate) async fn record(&self, tenant: TenantId, key: &str) -> Option<Record> {
        let key: IdempotencyKey = key.parse().unwrap();
        let request = HistoryRequest { tenant, key: Some(&key), stream: None };
        self.store.history(request).await.unwrap().record
    }

    /// A stream from its beginning. Its versions must be 1, 2, 3 …
    pub(crate) async fn events(&self, stream: &StreamId) -> Vec<StoredEvent> {
        self.events_after(stream, 0).await
    }

    /// A stream after a version, without holes.
    pub(crate) async fn events_after(&self, stream: &StreamId, after: u64) -> Vec<StoredEvent> {
        let request = HistoryRequest {
            tenant: stream.tenant,
            key: None,
            stream: Some((stream, Version::new(after))),
        };
        let history = self.store.history(request).await.unwrap();
        assert_eq!(history.record, None, "no key was asked for");
        assert_without_holes(stream, after, &history.events);
        history.events
    }

    /// How many events a stream has.
    pub(crate) async fn version(&self, stream: &StreamId) -> u64 {
        self.events(stream).await.len() as u64
    }

    /// The whole log of a tenant's partition, read in pages.
    pub(crate) async fn log(&self, tenant: TenantId) -> Vec<StoredEvent> {
        let partition = self.store.partition(tenant);
        let (mut log, mut after) = (Vec::new(), Position::START);
        loop {
            let page = self.store.read_after(partition, after, 512).await.unwrap();
            let Some(last) = page.last() else { return log };
            assert!(last.position > after, "a page must lead on");
            after = last.position;
            log.extend(page);
        }
    }

    /// The tenant's row of the counting projection.
    pub(crate) async fn tally(&self, tenant: TenantId) -> Tally {
        self.harness.tally(&self.store, tenant).await
    }

    pub(crate) async fn begin(&self, tenant: TenantId) -> Open<H> {
        self.store.begin(tenant).await.unwrap()
    }

    /// Claims a key in an open transaction.
    pub(crate) async fn claim(
        &self,
        transaction: &mut Open<H>,
        of: TenantId,
        key: &str,
    ) -> Option<Record> {
        let key: IdempotencyKey = key.parse().unwrap();
        transaction.claim(of, &key).await.unwrap()
    }

    /// A stream as an open transaction sees it.
    pub(crate) async fn events_in(
        &self,
        transaction: &mut Open<H>,
        stream: &StreamId,
    ) -> Vec<StoredEvent> {
        let request = HistoryRequest {
            tenant: stream.tenant,
            key: None,
            stream: Some((stream, Version::NONE)),
        };
        let history = transaction.history(request).await.unwrap();
        assert_without_holes(stream, 0, &history.events);
        history.events
    }

    /// Starts a commit in a task of its own, and lets it come as far as its first wait.
    pub(crate) async fn start(&self, commit: Commit) -> JoinHandle<Result<Committed, StoreError>> {
        let (polled, is_polled) = oneshot::channel();
        let world = self.clone();
        let task = tokio::spawn(async move {
            let counting = world.counting();
            let mut committing = pin!(world.store.commit(commit, &counting));
            let at_once = poll_once(committing.as_mut()).await;
            polled.send(()).unwrap();
            match at_once {
                Some(answer) => answer,
                None => committing.await,
            }
        });
        is_polled.await.unwrap();
        task
    }

    /// Gives a task every chance to end too early, with reads of the store; an honest store never
    /// lets it.
    pub(crate) async fn assert_waits<T>(&self, task: &JoinHandle<T>) {
        for _ in 0..20 {
            assert_eq!(self.record(crate::sample::tenant(9), "nobody's").await, None);
            tokio::task::yield_now().await;
        }
        assert!(!task.is_finished(), "did not wait for an open transaction");
    }

    /// Writes into an open transaction, without projections.
    pub(crate) async fn write(
        &self,
        transaction: &mut Open<H>,
        commit: Commit,
    ) -> Result<(), StoreError> {
        transaction.write(commit, &Projections::none()).await
    }
}

impl<H: Harness> Clone for World<H> {
    fn clone(&self) -> Self {
        Self { harness: Arc::clone(&self.harness), store: Arc::clone(&self.store) }
    }
}

impl<H: Harness> std::fmt::Debug for World<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

#[track_caller]
pub(crate) fn fresh(outcome: Result<Committed, StoreError>) -> Record {
    match outcome {
        Ok(Committed::Fresh(record)) => record,
        other => panic!("must be fresh, but: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn known(outcome: Result<Committed, StoreError>) -> Record {
    match outcome {
        Ok(Committed::Known(record)) => record,
        other => panic!("must be known, but: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_conflict(error: &StoreError, on: &StreamId, decided: u64, stored: u64) {
    let StoreError::Conflict { stream, expected, actual } = error else {
        panic!("must be a conflict, but: {error:?}");
    };
    assert_eq!(
        (stream, expected.get(), actual.get()),
        (on, decided, stored),
        "a conflict names the stream, the expected and the actual version"
    );
}

#[track_caller]
pub(crate) fn assert_taken(error: &StoreError, by: &StreamId, in_scope: &str, what: &str) {
    let StoreError::UniqueTaken { scope, value, holder } = error else {
        panic!("must be a taken value, but: {error:?}");
    };
    assert_eq!(
        (scope.as_str(), value.as_str(), holder),
        (in_scope, what, by),
        "a clash names the scope, the value and the holder"
    );
}

#[track_caller]
pub(crate) fn assert_without_holes(stream: &StreamId, after: u64, events: &[StoredEvent]) {
    for (event, version) in events.iter().zip(after + 1..) {
        assert_eq!(event.stream, *stream, "an event of another stream");
        assert_eq!(event.version.get(), version, "a hole in {stream}");
    }
}

/// Polls a future once, and says whether it is done.
pub(crate) async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
