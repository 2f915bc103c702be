//! The connections that read, at most so many at a time.
//!
//! The driver's own pool sends each connection a ping when it comes back, which doubles the trips
//! of a look-up. A connection that a cancelled call leaves behind is whole (its statement is reset,
//! and there is never more than one), so here it goes straight back.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sequor_core::StoreError;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::store_error;

#[derive(Debug)]
pub(crate) struct Readers {
    options: SqliteConnectOptions,
    wait: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<SqliteConnection>>,
}

/// A connection on loan; it goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    from: &'a Readers,
    connection: Option<SqliteConnection>,
    _permit: SemaphorePermit<'a>,
}

impl Readers {
    pub(crate) fn new(options: SqliteConnectOptions, count: usize, wait: Duration) -> Self {
        let (permits, idle) = (Semaphore::new(count), Mutex::default());
        Self { options, wait, permits, idle }
    }

    /// A free connection; a new one as long as there are fewer than allowed.
    pub(crate) async fn reader(&self) -> Result<Reader<'_>, StoreError> {
        let permit = tokio::time::timeout(self.wait, self.permits.acquire())
            .await
            .map_err(|_| StoreError::Busy)?
            .map_err(|_| StoreError::unavailable("the store is closed"))?;
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(store_error)?,
        };
        Ok(Reader { from: self, connection: Some(connection), _permit: permit })
    }

    /// Closes them; who still reads finishes.
    pub(crate) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            connection.close().await.ok();
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader<'_> {
    /// What statements run on.
    pub(crate) fn sqlite(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or_else(|| StoreError::unavailable("the reader is gone"))
    }

    /// Throws the connection away, after an error that may be its own.
    pub(crate) fn discard(mut self) {
        self.connection = None;
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take().filter(|_| !self.from.permits.is_closed())
        {
            self.from.idle().push(connection);
        }
    }
}
