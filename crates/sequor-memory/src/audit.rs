//! Proving that what is stored is whole.

use async_trait::async_trait;
use sequor_core::StoreError;
use sequor_core::audit::{AuditReport, AuditSettings};
use sequor_core::ports::Audit;

use crate::store::MemoryStore;

#[async_trait]
impl Audit for MemoryStore {
    async fn audit(&self, settings: AuditSettings) -> Result<AuditReport, StoreError> {
        Ok(self.content().audit(settings.within_ranges().findings_max))
    }
}
