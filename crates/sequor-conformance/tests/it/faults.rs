//! One broken promise each, in the words of the test that must notice it.

mod commit;
mod key;
mod reading;
mod transaction;
mod unique;

use sequor_core::ports::{HistoryRequest, ReadHistory};
use sequor_core::{Commit, IdempotencyKey, StoreError, StreamId, TenantId, Version};
use sequor_memory::MemoryStore;

use crate::broken::Fault;

pub(crate) use commit::*;
pub(crate) use key::*;
pub(crate) use reading::*;
pub(crate) use transaction::*;
pub(crate) use unique::*;

/// Breaks nothing.
#[derive(Debug, Default)]
pub(crate) struct Nothing;

impl Fault for Nothing {}

type Keyed = (TenantId, IdempotencyKey);

fn keyed(commit: &Commit) -> Option<Keyed> {
    Some((commit.meta.tenant, commit.meta.key.clone()?))
}

/// The version that is stored.
async fn version(store: &MemoryStore, stream: &StreamId) -> Result<Version, StoreError> {
    let request =
        HistoryRequest { tenant: stream.tenant, key: None, stream: Some((stream, Version::NONE)) };
    Ok(Version::new(store.history(request).await?.events.len() as u64))
}
