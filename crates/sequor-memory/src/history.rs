//! Reading what was.

use async_trait::async_trait;
use sequor_core::StoreError;
use sequor_core::ports::{History, HistoryRequest, ReadHistory};

use crate::content::View;
use crate::store::MemoryStore;

#[async_trait]
impl ReadHistory for MemoryStore {
    async fn history(&self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        let found = View { content: &self.content(), written: &[] }.find(&request)?;
        Ok(found.into_history())
    }
}
