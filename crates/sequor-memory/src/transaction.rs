//! A transaction that stays open while a handler works in it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sequor_core::admission::Ledger;
use sequor_core::ports::{History, HistoryRequest, Transact, Transaction};
use sequor_core::{Commit, IdempotencyKey, Invalid, Projections, Record, StoreError, TenantId};
use tokio::sync::OwnedRwLockWriteGuard;

use crate::content::{Judged, View, Written};
use crate::project::project_inline;
use crate::store::MemoryStore;
use crate::tables::Tables;

/// An open transaction of a [`MemoryStore`]: the only one, until it is dropped.
pub struct MemoryTransaction {
    store: MemoryStore,
    tenant: TenantId,
    tables: Tables,
    written: Vec<Written>,
    /// Why this transaction can only be dropped.
    failure: Option<StoreError>,
    _turn: OwnedRwLockWriteGuard<()>,
}

#[async_trait]
impl Transact for MemoryStore {
    type Connection = Tables;
    type Transaction = MemoryTransaction;

    async fn begin(&self, tenant: TenantId) -> Result<MemoryTransaction, StoreError> {
        let turn = self.own_turn().await?;
        let tables = self.content().tables();
        Ok(MemoryTransaction {
            store: self.clone(),
            tenant,
            tables: (*tables).clone(),
            written: Vec::new(),
            failure: None,
            _turn: turn,
        })
    }
}

#[async_trait]
impl Transaction for MemoryTransaction {
    type Connection = Tables;

    /// Nobody else can have claimed the key: this transaction is the only one.
    async fn claim(
        &mut self,
        tenant: TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, StoreError> {
        self.check(tenant)?;
        let content = self.store.content();
        let view = View { content: &content, written: &self.written };
        Ok(view.record(tenant, key).cloned())
    }

    async fn history(&mut self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        self.check(request.tenant)?;
        let found =
            View { content: &self.store.content(), written: &self.written }.find(&request)?;
        Ok(found.into_history())
    }

    fn connection(&mut self) -> &mut Tables {
        &mut self.tables
    }

    fn own_rows_failed(&self, error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
        StoreError::Corrupt { what: format!("a handler's own rows: {error}") }
    }

    async fn write(
        &mut self,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Result<(), StoreError> {
        match self.write_unless_known(commit, projections).await? {
            None => Ok(()),
            Some(_) => {
                let what = "a command was written whose key is known: claim it first".to_owned();
                let failure = StoreError::Corrupt { what };
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    async fn commit(self) -> Result<Vec<Record>, StoreError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let records: Vec<_> = self.written.iter().map(|one| Arc::clone(&one.record)).collect();
        let mut content = self.store.content();
        self.written.into_iter().for_each(|one| content.apply(one));
        content.replace_tables(self.tables);
        drop(content);
        self.store.announce(records.iter().filter_map(|record| record.position).max());
        Ok(records.into_iter().map(Arc::unwrap_or_clone).collect())
    }
}

impl MemoryTransaction {
    fn check(&self, tenant: TenantId) -> Result<(), Invalid> {
        if tenant == self.tenant { Ok(()) } else { Err(Invalid::TenantsDiffer) }
    }

    /// Writes a command, or finds that its key is known.
    pub(crate) async fn write_unless_known(
        &mut self,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Result<Option<Record>, StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        // Whoever drops this future half-way leaves half of a projection's rows behind.
        let what = "a write was given up half-way; the transaction cannot commit".to_owned();
        self.failure = Some(StoreError::Corrupt { what });
        let outcome = self.judge_and_project(commit, projections).await;
        self.failure = outcome.as_ref().err().cloned();
        outcome
    }

    async fn judge_and_project(
        &mut self,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Result<Option<Record>, StoreError> {
        self.check(commit.meta.tenant)?;
        let judged = self.store.content().judge(commit, &self.written)?;
        let written = match judged {
            Judged::Known(record) => return Ok(Some(record)),
            Judged::Fresh(written) => written,
        };
        project_inline(projections, &written.events, &mut self.tables).await?;
        self.written.push(written);
        Ok(None)
    }
}

impl fmt::Debug for MemoryTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransaction")
            .field("store", &self.store)
            .field("written", &self.written.len())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
