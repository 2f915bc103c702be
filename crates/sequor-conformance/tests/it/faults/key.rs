//! Faults in what a key answers.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed, Transact};
use sequor_core::{
    Commit, IdempotencyKey, Json, Projections, Record, StoreError, StoredEvent, TenantId,
};
use sequor_memory::{MemoryStore, Tables};

use super::{Keyed, keyed, version};
use crate::broken::{Answer, Fault};

#[derive(Debug, Default)]
pub(crate) struct ForgetsTenantOfKeys(Mutex<HashMap<IdempotencyKey, Record>>);

impl Fault for ForgetsTenantOfKeys {
    fn answers_at_once(&self, commit: &Commit) -> Option<Answer> {
        let known = self.0.lock().unwrap().get(commit.meta.key.as_ref()?).cloned();
        known.map(|record| Ok(Committed::Known(record)))
    }

    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        if let (Some(key), Ok(Committed::Fresh(record))) = (&commit.meta.key, &answer) {
            self.0.lock().unwrap().insert(key.clone(), record.clone());
        }
        answer
    }
}

#[derive(Debug, Default)]
pub(crate) struct AnswersWithCallersFingerprint;

impl Fault for AnswersWithCallersFingerprint {
    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        match answer {
            Ok(Committed::Known(record)) => {
                let fingerprint = commit.fingerprint;
                Ok(Committed::Known(Record { fingerprint, ..record }))
            }
            other => other,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct OverwritesFirstRecord(Mutex<HashMap<Keyed, Record>>);

impl Fault for OverwritesFirstRecord {
    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        if let (Some(key), Ok(Committed::Known(_))) = (keyed(commit), &answer) {
            self.0.lock().unwrap().insert(key, commit.record(None));
        }
        answer
    }

    fn reads_record(
        &self,
        of: (TenantId, &IdempotencyKey),
        found: Option<Record>,
    ) -> Option<Record> {
        let overwritten = self.0.lock().unwrap().get(&(of.0, of.1.clone())).cloned();
        overwritten.or(found)
    }
}

#[derive(Debug, Default)]
pub(crate) struct LosesOutputOnReplay;

impl Fault for LosesOutputOnReplay {
    fn answers(&self, _: &Commit, answer: Answer) -> Answer {
        match answer {
            Ok(Committed::Known(record)) => {
                let output = Json::from_stored("null");
                Ok(Committed::Known(Record { output, ..record }))
            }
            other => other,
        }
    }
}

/// Keeps a claim outside the transaction that made it.
#[derive(Debug, Default)]
pub(crate) struct ReplaysRolledBackRival(Mutex<HashMap<Keyed, Record>>);

#[async_trait]
impl Fault for ReplaysRolledBackRival {
    fn wrote(&self, commit: &Commit, _: &[StoredEvent]) {
        if let Some(key) = keyed(commit) {
            self.0.lock().unwrap().insert(key, commit.record(None));
        }
    }

    async fn commits(
        &self,
        store: &MemoryStore,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Answer {
        drop(store.begin(commit.meta.tenant).await?); // Waits for the rival as an honest store does.
        let claimed = keyed(&commit).and_then(|key| self.0.lock().unwrap().get(&key).cloned());
        match claimed {
            Some(record) => Ok(Committed::Known(record)),
            None => store.commit(commit, projections).await,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct KeepsKeyOfFailedCommand(Mutex<HashMap<Keyed, Record>>);

impl Fault for KeepsKeyOfFailedCommand {
    fn answers_at_once(&self, commit: &Commit) -> Option<Answer> {
        let failed = self.0.lock().unwrap().get(&keyed(commit)?).cloned();
        failed.map(|record| Ok(Committed::Known(record)))
    }

    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        if let (Some(key), Err(_)) = (keyed(commit), &answer) {
            self.0.lock().unwrap().insert(key, commit.record(None));
        }
        answer
    }
}

#[derive(Debug, Default)]
pub(crate) struct FoldsCaseOfKeys;

impl Fault for FoldsCaseOfKeys {
    fn taken(&self, mut commit: Commit) -> Commit {
        commit.meta.key = commit.meta.key.map(|key| self.looks_up_key(&key));
        commit
    }

    fn looks_up_key(&self, key: &IdempotencyKey) -> IdempotencyKey {
        key.as_str().to_lowercase().parse().unwrap()
    }
}

#[derive(Debug, Default)]
pub(crate) struct RecordsNoEmptyCommand;

impl Fault for RecordsNoEmptyCommand {
    fn taken(&self, mut commit: Commit) -> Commit {
        if commit.events.is_empty() {
            commit.meta.key = None;
        }
        commit
    }
}

#[derive(Debug, Default)]
pub(crate) struct JudgesVersionsFirst;

#[async_trait]
impl Fault for JudgesVersionsFirst {
    async fn commits(
        &self,
        store: &MemoryStore,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Answer {
        for write in &commit.streams {
            let actual = version(store, &write.stream).await?;
            if actual != write.expected {
                let (stream, expected) = (write.stream.clone(), write.expected);
                return Err(StoreError::Conflict { stream, expected, actual });
            }
        }
        store.commit(commit, projections).await
    }
}
