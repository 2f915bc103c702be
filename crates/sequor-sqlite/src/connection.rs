//! The one connection that writes, and the watch over its transactions.
//!
//! User code (handlers, inline projections) works on this connection inside our transaction. The
//! watch makes sure that only the writer ends it: a COMMIT of somebody else's is refused by the
//! commit hook, and any ROLLBACK, SQLite's own after an error included, is noticed.
//!
//! The driver's transactions are tied to a borrow, and ours wander between tasks; so they are
//! begun and ended through its transaction manager, which keeps count: a `begin` of user code is a
//! savepoint.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sequor_core::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteTransactionManager};
use sqlx::{ConnectOptions, Connection, SqlSafeStr, SqliteConnection};
use sqlx_core::transaction::TransactionManager;

use crate::error::{commit_error, corrupt, store_error};
use crate::row;

/// What was seen of the transaction's end.
#[derive(Debug, Default)]
struct Watch {
    may_commit: AtomicBool,
    rolled_back: AtomicBool,
}

/// Numbers that are drawn and never used twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    /// The highest position drawn.
    pub(crate) position: u64,
    /// The highest command number drawn.
    pub(crate) number: u64,
}

impl Counters {
    /// Whether something that was drawn in `drawn` is missing here.
    fn are_behind(&self, drawn: &Self) -> bool {
        self.position < drawn.position || self.number < drawn.number
    }
}

/// The write connection with its counters.
pub(crate) struct WriteConnection {
    sqlite: SqliteConnection,
    watch: Arc<Watch>,
    pub(crate) counters: Counters,
    /// Whether no transaction is left in an unknown state.
    is_whole: bool,
}

impl WriteConnection {
    /// Opens it.
    pub(crate) async fn open(options: &SqliteConnectOptions) -> Result<Self, StoreError> {
        Self::over(options.connect().await.map_err(store_error)?).await
    }

    /// Watches over a connection, and reads how far the counters are.
    pub(crate) async fn over(mut sqlite: SqliteConnection) -> Result<Self, StoreError> {
        let watch = Arc::new(Watch::default());
        let mut handle = sqlite.lock_handle().await.map_err(store_error)?;
        let committing = Arc::clone(&watch);
        handle.set_commit_hook(move || committing.may_commit.load(Ordering::SeqCst));
        let rolling = Arc::clone(&watch);
        handle.set_rollback_hook(move || rolling.rolled_back.store(true, Ordering::SeqCst));
        drop(handle);
        let counters = read_counters(&mut sqlite).await?;
        Ok(Self { sqlite, watch, counters, is_whole: true })
    }

    /// What statements run on.
    pub(crate) fn sqlite(&mut self) -> &mut SqliteConnection {
        &mut self.sqlite
    }

    /// Opens a transaction that user code may work in.
    pub(crate) async fn begin(&mut self) -> Result<(), StoreError> {
        self.watch.rolled_back.store(false, Ordering::SeqCst);
        let begin = include_str!("sql/begin.sql").into_sql_str();
        SqliteTransactionManager::begin(&mut self.sqlite, Some(begin)).await.map_err(store_error)
    }

    /// Makes it true. On an error the connection is to be thrown away, and with it what remains of
    /// the transaction.
    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        if self.watch.rolled_back.load(Ordering::SeqCst) {
            return Err(corrupt(
                "the transaction was ended by somebody else's COMMIT or ROLLBACK, or by an error \
                 that was swallowed; nothing was written",
            ));
        }
        if SqliteTransactionManager::get_transaction_depth(&self.sqlite) == 0 {
            return Err(corrupt(
                "the transaction is gone from its connection; nothing was written",
            ));
        }
        if read_counters(&mut self.sqlite).await?.are_behind(&self.counters) {
            return Err(corrupt(
                "what the transaction wrote was undone by somebody else's savepoint; nothing was \
                 written",
            ));
        }
        self.watch.may_commit.store(true, Ordering::SeqCst);
        let committed = SqliteTransactionManager::commit(&mut self.sqlite).await;
        self.expect_no_commit();
        committed.map_err(commit_error)?;
        if SqliteTransactionManager::get_transaction_depth(&self.sqlite) > 0 {
            return Err(corrupt("a savepoint was left open at commit; nothing was written"));
        }
        Ok(())
    }

    /// Undoes it. `false`: the connection is to be thrown away.
    pub(crate) async fn rollback(&mut self) -> bool {
        while SqliteTransactionManager::get_transaction_depth(&self.sqlite) > 0 {
            if SqliteTransactionManager::rollback(&mut self.sqlite).await.is_err() {
                return false;
            }
        }
        self.is_whole
    }

    /// The statements that follow bring their own BEGIN and COMMIT.
    pub(crate) fn expect_commit(&mut self) {
        self.watch.rolled_back.store(false, Ordering::SeqCst);
        self.watch.may_commit.store(true, Ordering::SeqCst);
    }

    /// From now on, only [`WriteConnection::commit`] may commit.
    pub(crate) fn expect_no_commit(&mut self) {
        self.watch.may_commit.store(false, Ordering::SeqCst);
    }

    /// Undoes a transaction that statements began by themselves, after one of them failed. Some
    /// errors have undone it already.
    pub(crate) async fn rollback_whole(&mut self) {
        self.expect_no_commit();
        if self.watch.rolled_back.load(Ordering::SeqCst) {
            return;
        }
        let rollback = sqlx::query(include_str!("sql/rollback.sql"));
        self.is_whole = rollback.execute(&mut self.sqlite).await.is_ok();
    }

    /// Closes the file. The last one to do so folds the log into it.
    pub(crate) async fn close(self) {
        if let Err(error) = self.sqlite.close().await {
            tracing::warn!(%error, "the write connection did not close cleanly");
        }
    }
}

impl fmt::Debug for WriteConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteConnection").field("counters", &self.counters).finish_non_exhaustive()
    }
}

async fn read_counters(sqlite: &mut SqliteConnection) -> Result<Counters, StoreError> {
    let read = sqlx::query(include_str!("sql/read_counters.sql")).fetch_one(sqlite).await;
    row::counters(&read.map_err(store_error)?)
}
