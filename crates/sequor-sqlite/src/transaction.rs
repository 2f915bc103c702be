//! A transaction that stays open while a handler works in it: the write connection on loan.

use async_trait::async_trait;
use sequor_core::ports::{History, HistoryRequest, Transact, Transaction};
use sequor_core::{Commit, IdempotencyKey, Invalid, Projections, Record, StoreError, TenantId};
use sqlx::SqliteConnection;
use tokio::sync::oneshot;

use crate::commit::batch::project_one;
use crate::commit::check;
use crate::commit::judge::{Judged, judge};
use crate::commit::look_up::look_up;
use crate::commit::write::write_rows;
use crate::connection::WriteConnection;
use crate::error::{corrupt, user_error};
use crate::history::read_history;
use crate::store::SqliteStore;
use crate::writer::{GiveBack, Lease, Request};

#[async_trait]
impl Transact for SqliteStore {
    type Connection = SqliteConnection;
    type Transaction = SqliteTransaction;

    async fn begin(&self, tenant: TenantId) -> Result<SqliteTransaction, StoreError> {
        self.begin_for(Some(tenant)).await
    }
}

impl SqliteStore {
    /// Opens a transaction for a tenant, or for rows that are nobody's.
    pub(crate) async fn begin_for(
        &self,
        tenant: Option<TenantId>,
    ) -> Result<SqliteTransaction, StoreError> {
        let (answer, answered) = oneshot::channel();
        let wait = async {
            self.send(Request::Begin(answer)).await?;
            answered.await.map_err(|_| StoreError::unavailable("the writer is gone"))?
        };
        let lease = tokio::time::timeout(self.writer_wait_max(), wait)
            .await
            .map_err(|_| StoreError::Busy)??;
        Ok(SqliteTransaction { tenant, lease: Some(lease), records: Vec::new(), failure: None })
    }
}

/// An open transaction: the one write connection, on loan from the writer. Nobody else writes
/// until it ends, so keep it short. Dropping it rolls back.
#[derive(Debug)]
pub struct SqliteTransaction {
    /// Whose; nobody's while tables are set up.
    tenant: Option<TenantId>,
    /// There until the transaction ends.
    lease: Option<Lease>,
    records: Vec<Record>,
    /// Why nothing of it may become true any more.
    failure: Option<StoreError>,
}

impl SqliteTransaction {
    fn check_tenant(&self, tenant: TenantId) -> Result<(), Invalid> {
        if self.tenant == Some(tenant) { Ok(()) } else { Err(Invalid::TenantsDiffer) }
    }

    fn write_connection(&mut self) -> Result<&mut WriteConnection, StoreError> {
        let lease = self.lease.as_mut().ok_or_else(|| corrupt("the transaction has ended"))?;
        Ok(&mut lease.connection)
    }

    async fn judge_and_write(
        &mut self,
        commit: &Commit,
        projections: &Projections<SqliteConnection>,
    ) -> Result<Record, StoreError> {
        self.check_tenant(commit.meta.tenant)?;
        check(commit)?;
        let connection = self.write_connection()?;
        let mut ledger = look_up(std::iter::once(commit), connection.sqlite()).await?;
        let numbered = match judge(commit, &mut ledger, &mut connection.counters) {
            Judged::Fresh(numbered) => numbered,
            Judged::Refused(error) => return Err(error),
            Judged::Known(_) => {
                return Err(corrupt("a command was written whose key is known: claim it first"));
            }
        };
        let sqlite = connection.sqlite();
        write_rows(&[(commit, &numbered)], &ledger, sqlite).await.map_err(|failed| failed.error)?;
        project_one(commit, &numbered, projections, sqlite).await?;
        Ok(numbered.record)
    }
}

#[async_trait]
impl Transaction for SqliteTransaction {
    type Connection = SqliteConnection;

    /// The transaction has the write lock, so there are no rivals: what is read now stays true.
    async fn claim(
        &mut self,
        tenant: TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, StoreError> {
        let request = HistoryRequest { tenant, key: Some(key), stream: None };
        Ok(self.history(request).await?.record)
    }

    async fn history(&mut self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        self.check_tenant(request.tenant)?;
        read_history(self.write_connection()?.sqlite(), request).await
    }

    fn connection(&mut self) -> &mut SqliteConnection {
        // Invariant: only `commit` takes the loan away, and it takes the transaction with it.
        let lease = self.lease.as_mut().expect("an open transaction has its connection");
        lease.connection.sqlite()
    }

    fn own_rows_failed(&self, error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
        user_error("a handler's own rows", error)
    }

    async fn write(
        &mut self,
        commit: Commit,
        projections: &Projections<SqliteConnection>,
    ) -> Result<(), StoreError> {
        // Set first, so that a future that is dropped half-way leaves a transaction that cannot
        // become true.
        let unfinished = corrupt("a write was given up half-way; the transaction cannot commit");
        if let Some(failure) = self.failure.replace(unfinished) {
            self.failure = Some(failure.clone());
            return Err(failure);
        }
        let written = self.judge_and_write(&commit, projections).await;
        self.failure = written.as_ref().err().cloned();
        self.records.push(written?);
        Ok(())
    }

    async fn commit(mut self) -> Result<Vec<Record>, StoreError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let lease = self.lease.take().ok_or_else(|| corrupt("the transaction has ended"))?;
        let (answer, answered) = oneshot::channel();
        lease
            .give_back
            .send(GiveBack::Commit(lease.connection, answer))
            .map_err(|_| StoreError::unavailable("the writer is gone"))?;
        answered.await.unwrap_or(Err(StoreError::Unknown))?;
        Ok(std::mem::take(&mut self.records))
    }
}

impl Drop for SqliteTransaction {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            // If the writer is gone, dropping the connection rolls back.
            lease.give_back.send(GiveBack::Rollback(lease.connection)).ok();
        }
    }
}
