//! One broken promise each, in the words of the test that must notice it.

mod commit;
mod key;
mod reading;
mod transaction;
mod unique;

use sequor_core::ports::{HistoryRequest, ReadHistory};
use sequor_core::{
    Commit, IdempotencyKey, Record, RecordState, StoreError, StreamId, StreamVersion, StreamWrite,
    TenantId, Version,
};
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

/// The record that a commit would have had.
fn record_of(commit: &Commit) -> Record {
    let after =
        |write: &StreamWrite| StreamVersion { stream: write.stream.clone(), version: write.next };
    Record {
        command_id: commit.meta.command_id,
        command_name: commit.name.clone(),
        fingerprint: commit.fingerprint,
        actor: commit.meta.actor.clone(),
        recorded_at: commit.meta.time,
        streams: commit.streams.iter().map(after).collect(),
        position: None,
        output: commit.output.clone(),
        state: RecordState::Completed,
    }
}

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
