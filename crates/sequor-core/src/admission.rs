//! Whether a commit may become true, given what a store holds: pure, and the same in every store
//! that has one writer.

use crate::commit::{Commit, StreamWrite};
use crate::error::StoreError;
use crate::key::IdempotencyKey;
use crate::meta::CommandId;
use crate::names::Name;
use crate::record::Record;
use crate::stream::{StreamId, Version};
use crate::tenant::TenantId;
use crate::unique::{UniqueChange, UniqueKey};

/// What a store holds, as far as a commit asks for it.
pub trait Ledger {
    /// What is remembered under a key.
    fn record(&self, tenant: TenantId, key: &IdempotencyKey) -> Option<&Record>;
    /// The version of a stream; [`Version::NONE`] when it has no events.
    fn version(&self, stream: &StreamId) -> Version;
    /// The command that made this version; `None` when there is none. Asked for a stream only where a
    /// commit says [`StreamWrite::after`].
    fn maker(&self, stream: &StreamId) -> Option<CommandId>;
    /// Who holds a unique value.
    fn holder(&self, tenant: TenantId, unique: &UniqueKey) -> Option<&StreamId>;
    /// What an aggregate holds.
    fn held(&self, stream: &StreamId) -> Vec<UniqueKey>;
}

/// A commit that may go on.
#[derive(Clone, Debug)]
pub enum Admission {
    /// The key is known: this record answers, whatever the commit wanted.
    Known(Box<Record>),
    /// Everything the decision was made on still holds.
    Fresh(UniqueWrites),
}

/// What a commit does to unique keys, in two phases: all releases, then all claims. An aggregate
/// that keeps its value releases and claims nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueWrites {
    /// Values that are let go of, with their holders until now.
    pub releases: Vec<(StreamId, UniqueKey)>,
    /// Values that are held from now on.
    pub claims: Vec<(StreamId, UniqueKey)>,
}

/// Judges a commit: the key first, then every version and who made it, then the unique keys. Hence a
/// used key wins over a conflict, and a conflict over a taken value.
///
/// # Errors
/// [`StoreError::Conflict`] with the first stream (in their order) that has moved on, or has come to
/// the expected version by another command than the awaited one, else
/// [`StoreError::UniqueTaken`].
pub fn admit(commit: &Commit, ledger: &impl Ledger) -> Result<Admission, StoreError> {
    let known = commit.meta.key.as_ref().and_then(|key| ledger.record(commit.meta.tenant, key));
    if let Some(record) = known {
        return Ok(Admission::Known(Box::new(record.clone())));
    }
    for write in &commit.streams {
        let actual = ledger.version(&write.stream);
        if actual != write.expected || !is_of_maker(write, ledger) {
            let (stream, expected) = (write.stream.clone(), write.expected);
            return Err(StoreError::Conflict { stream, expected, actual });
        }
    }
    unique_writes(commit, ledger).map(Admission::Fresh)
}

fn is_of_maker(write: &StreamWrite, ledger: &impl Ledger) -> bool {
    write.after.is_none() || write.after == ledger.maker(&write.stream)
}

fn unique_writes(commit: &Commit, ledger: &impl Ledger) -> Result<UniqueWrites, StoreError> {
    let mut writes = UniqueWrites::default();
    for write in commit.streams.iter().filter(|write| !write.unique.is_empty()) {
        let before = ledger.held(&write.stream);
        let mut after = before.clone();
        write.unique.iter().for_each(|change| apply(change, &mut after));
        let own = |unique: &UniqueKey| (write.stream.clone(), unique.clone());
        writes.releases.extend(before.iter().filter(|one| !after.contains(one)).map(own));
        writes.claims.extend(after.iter().filter(|one| !before.contains(one)).map(own));
    }
    writes.claims.sort_by(|one, two| one.1.cmp(&two.1));
    check_claims(commit.meta.tenant, &writes, ledger)?;
    Ok(writes)
}

fn apply(change: &UniqueChange, held: &mut Vec<UniqueKey>) {
    let release = |held: &mut Vec<UniqueKey>, scope: &Name| held.retain(|one| one.scope != *scope);
    match change {
        UniqueChange::Hold(unique) => {
            release(held, &unique.scope);
            held.push(unique.clone());
        }
        UniqueChange::Release(scope) => release(held, scope),
        UniqueChange::ReleaseAll => held.clear(),
    }
}

fn check_claims(
    tenant: TenantId,
    writes: &UniqueWrites,
    ledger: &impl Ledger,
) -> Result<(), StoreError> {
    for (index, (claimant, unique)) in writes.claims.iter().enumerate() {
        let let_go = |holder: &&StreamId| {
            !writes.releases.iter().any(|(by, what)| by == *holder && what == unique)
        };
        let rival = writes.claims.iter().take(index).find(|(_, other)| other == unique);
        let holder = rival
            .map(|(stream, _)| stream)
            .or_else(|| ledger.holder(tenant, unique).filter(let_go))
            .filter(|holder| *holder != claimant);
        if let Some(holder) = holder {
            return Err(StoreError::UniqueTaken {
                scope: unique.scope.clone(),
                value: unique.value.as_ref().to_owned(),
                holder: holder.clone(),
            });
        }
    }
    Ok(())
}
