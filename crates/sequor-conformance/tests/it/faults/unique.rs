//! Faults in who holds a value.

use std::collections::HashMap;
use std::sync::Mutex;

use sequor_core::ports::Committed;
use sequor_core::{Commit, StoreError, StreamId, UniqueChange, UniqueKey};

use crate::broken::{Answer, Fault};

/// Who holds what, kept beside the store as a table without some of its columns would.
#[derive(Debug, Default)]
struct Holders(Mutex<HashMap<UniqueKey, StreamId>>);

impl Holders {
    /// The holder of a value that a commit claims.
    fn of_claim(&self, commit: &Commit, also: impl Fn(&StreamId) -> bool) -> Option<Answer> {
        let holders = self.0.lock().unwrap();
        let claims = commit.streams.iter().flat_map(|write| {
            let held = |change: &UniqueChange| match change {
                UniqueChange::Hold(unique) => Some((write.stream.clone(), unique.clone())),
                UniqueChange::Release(_) | UniqueChange::ReleaseAll => None,
            };
            write.unique.iter().filter_map(held)
        });
        let taken = |(claimant, unique): (StreamId, UniqueKey)| {
            let holder = holders.get(&unique).filter(|holder| **holder != claimant)?;
            also(holder).then(|| {
                Err(StoreError::UniqueTaken {
                    scope: unique.scope.clone(),
                    value: unique.value.as_ref().to_owned(),
                    holder: holder.clone(),
                })
            })
        };
        claims.into_iter().find_map(taken)
    }

    fn take_in(&self, commit: &Commit, answer: &Answer) {
        if !matches!(answer, Ok(Committed::Fresh(_))) {
            return;
        }
        let mut holders = self.0.lock().unwrap();
        for write in &commit.streams {
            for change in &write.unique {
                match change {
                    UniqueChange::Hold(unique) => {
                        holders.retain(|one, by| one.scope != unique.scope || *by != write.stream);
                        holders.insert(unique.clone(), write.stream.clone());
                    }
                    UniqueChange::Release(scope) => {
                        holders.retain(|one, by| one.scope != *scope || *by != write.stream);
                    }
                    UniqueChange::ReleaseAll => holders.retain(|_, by| *by != write.stream),
                }
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct IgnoresTenantOfUniqueValues(Holders);

impl Fault for IgnoresTenantOfUniqueValues {
    fn answers_at_once(&self, commit: &Commit) -> Option<Answer> {
        self.0.of_claim(commit, |holder| holder.tenant != commit.meta.tenant)
    }

    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        self.0.take_in(commit, &answer);
        answer
    }
}

#[derive(Debug, Default)]
pub(crate) struct ClaimsBeforeReleasing(Holders);

impl Fault for ClaimsBeforeReleasing {
    fn answers_at_once(&self, commit: &Commit) -> Option<Answer> {
        self.0.of_claim(commit, |holder| holder.tenant == commit.meta.tenant)
    }

    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        self.0.take_in(commit, &answer);
        answer
    }
}

#[derive(Debug, Default)]
pub(crate) struct ForgetsReleases;

impl Fault for ForgetsReleases {
    fn taken(&self, mut commit: Commit) -> Commit {
        for write in &mut commit.streams {
            write.unique.retain(|change| matches!(change, UniqueChange::Hold(_)));
        }
        commit
    }
}

#[derive(Debug, Default)]
pub(crate) struct NamesClaimantAsHolder;

impl Fault for NamesClaimantAsHolder {
    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        match answer {
            Err(StoreError::UniqueTaken { scope, value, .. }) => {
                let holder = commit.streams[0].stream.clone();
                Err(StoreError::UniqueTaken { scope, value, holder })
            }
            other => other,
        }
    }
}
