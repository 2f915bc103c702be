//! A transaction that stays open while a handler works in it.

use async_trait::async_trait;

use super::history::{History, HistoryRequest};
use crate::commit::Commit;
use crate::error::StoreError;
use crate::key::IdempotencyKey;
use crate::projection::Projections;
use crate::record::Record;
use crate::stream::StreamId;
use crate::tenant::TenantId;

/// Opens transactions.
#[async_trait]
pub trait Transact: Send + Sync + 'static {
    /// What handlers and inline projections write their own rows through.
    type Connection: Send + ?Sized + 'static;

    /// A transaction of this store.
    type Transaction: Transaction<Connection = Self::Connection>;

    /// Opens one for a tenant, and waits a bounded time for it where there is one writer.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when the wait was too long, [`StoreError::Unavailable`].
    async fn begin(&self, tenant: TenantId) -> Result<Self::Transaction, StoreError>;
}

/// An open transaction of one tenant. Dropping it rolls back.
///
/// A claim, a history or a write of another tenant is [`Invalid::TenantsDiffer`], and has done
/// nothing.
///
/// [`Invalid::TenantsDiffer`]: crate::Invalid::TenantsDiffer
///
/// A state rather than a service, hence more than three methods: they are its life from claim to
/// commit.
#[async_trait]
pub trait Transaction: Send + 'static {
    /// What the handler's own rows are written through.
    type Connection: Send + ?Sized + 'static;

    /// Claims a key for this transaction, or finds its record. Waits a bounded time for a rival
    /// that has claimed it and not ended yet.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when the rival took too long, [`StoreError::Unavailable`].
    async fn claim(
        &mut self,
        tenant: TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, StoreError>;

    /// Keeps everybody else from writing a stream until this transaction ends, so that what is read
    /// of it next stays true. Asked for in the order of streams, after a try
    /// that failed; a store with one writer has nothing to do.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when somebody else held it for too long, [`StoreError::Unavailable`].
    async fn hold(&mut self, stream: &StreamId) -> Result<(), StoreError> {
        let _ = stream;
        Ok(())
    }

    /// Reads as [`ReadHistory::history`](super::ReadHistory::history), seeing this transaction's
    /// own writes.
    ///
    /// # Errors
    /// As there.
    async fn history(&mut self, request: HistoryRequest<'_>) -> Result<History, StoreError>;

    /// The connection, for the handler's own rows.
    fn connection(&mut self) -> &mut Self::Connection;

    /// What an error means that the handler met on the connection: the store's own troubles keep
    /// their meaning, anything else is [`StoreError::Corrupt`].
    fn own_rows_failed(&self, error: Box<dyn std::error::Error + Send + Sync>) -> StoreError;

    /// Writes one command with all that follows from it; several commands may share a
    /// transaction. Nothing of it is visible to others before [`Transaction::commit`].
    ///
    /// # Errors
    /// As [`CommitCommand::commit`](super::CommitCommand::commit). After an error the transaction
    /// can only be dropped.
    async fn write(
        &mut self,
        commit: Commit,
        projections: &Projections<Self::Connection>,
    ) -> Result<(), StoreError>;

    /// Makes everything true, and says what became of each written command, in order.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] when the connection was lost while committing; otherwise nothing
    /// was written.
    ///
    /// # Cancellation
    /// As [`CommitCommand::commit`](super::CommitCommand::commit).
    async fn commit(self) -> Result<Vec<Record>, StoreError>;
}
