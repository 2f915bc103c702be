//! Making a decided command true.

use std::sync::Arc;

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed, Submitted, Transact, Transaction};
use sequor_core::{Commit, Projections, StoreError};

use crate::content::Judged;
use crate::store::MemoryStore;
use crate::tables::Tables;

#[async_trait]
impl CommitCommand for MemoryStore {
    async fn submit(
        &self,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Result<Submitted, StoreError> {
        let answer = match projections.0.is_empty() {
            true => {
                let _turn = self.shared_turn().await?;
                self.commit_plain(commit)
            }
            false => self.commit_projected(commit, projections).await,
        };
        Ok(Submitted::ready(answer))
    }
}

impl MemoryStore {
    async fn commit_projected(
        &self,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Result<Committed, StoreError> {
        let mut transaction = self.begin(commit.meta.tenant).await?;
        if let Some(known) = transaction.write_unless_known(commit, projections).await? {
            return Ok(Committed::Known(known));
        }
        let mut records = transaction.commit().await?;
        let record = records.pop().ok_or(StoreError::Unknown)?;
        Ok(Committed::Fresh(record))
    }

    /// A commit that runs nobody else's code, hence needs no transaction.
    fn commit_plain(&self, commit: Commit) -> Result<Committed, StoreError> {
        let mut content = self.content();
        match content.judge(commit, &[])? {
            Judged::Known(record) => Ok(Committed::Known(record)),
            Judged::Fresh(written) => {
                let record = Arc::clone(&written.record);
                content.apply(written);
                drop(content);
                self.announce(record.position);
                Ok(Committed::Fresh(Arc::unwrap_or_clone(record)))
            }
        }
    }
}
