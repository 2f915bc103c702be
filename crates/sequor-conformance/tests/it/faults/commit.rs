//! Faults in what a commit is decided on, and in what order it becomes true.

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Committed};
use sequor_core::{Commit, Projections, StoreError, StoredEvent, StreamId, Version};
use sequor_memory::{MemoryStore, Tables};

use super::version;
use crate::broken::{Answer, Fault};

#[derive(Debug, Default)]
pub(crate) struct IgnoresTenantOfStreams;

impl Fault for IgnoresTenantOfStreams {
    fn taken(&self, mut commit: Commit) -> Commit {
        for write in &mut commit.streams {
            write.stream = self.looks_up_stream(&write.stream);
        }
        commit
    }

    fn looks_up_stream(&self, stream: &StreamId) -> StreamId {
        let tenant = "00000000-0000-0000-0000-000000000001".parse().unwrap();
        StreamId { tenant, ..stream.clone() }
    }

    fn reads_events(&self, of: &StreamId, found: Vec<StoredEvent>) -> Vec<StoredEvent> {
        let own = |event| StoredEvent { stream: of.clone(), ..event };
        found.into_iter().map(own).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct LeavesHolesInVersions;

impl Fault for LeavesHolesInVersions {
    fn reads_events(&self, _: &StreamId, found: Vec<StoredEvent>) -> Vec<StoredEvent> {
        let spread = |event: StoredEvent| StoredEvent {
            version: Version::new(event.version.get() * 2 - 1),
            ..event
        };
        found.into_iter().map(spread).collect()
    }
}

/// Writes on whatever version there is.
#[derive(Debug, Default)]
pub(crate) struct ChecksNoVersion(tokio::sync::Mutex<()>);

#[async_trait]
impl Fault for ChecksNoVersion {
    async fn commits(
        &self,
        store: &MemoryStore,
        mut commit: Commit,
        projections: &Projections<Tables>,
    ) -> Answer {
        let _alone = self.0.lock().await;
        for (index, write) in commit.streams.iter_mut().enumerate() {
            write.expected = version(store, &write.stream).await?;
            write.next = write.expected;
            for event in commit.events.iter_mut().filter(|event| event.stream == index) {
                write.next = write.next.next();
                event.version = write.next;
            }
        }
        store.commit(commit, projections).await
    }
}

/// Takes a version for what it should be if the number is right.
#[derive(Debug, Default)]
pub(crate) struct ForgetsMakers;

impl Fault for ForgetsMakers {
    fn taken(&self, mut commit: Commit) -> Commit {
        commit.streams.iter_mut().for_each(|write| write.after = None);
        commit
    }
}

#[derive(Debug, Default)]
pub(crate) struct JudgesWhenAsked;

impl Fault for JudgesWhenAsked {
    fn judges_when_asked(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
pub(crate) struct IgnoresGuards;

impl Fault for IgnoresGuards {
    fn taken(&self, mut commit: Commit) -> Commit {
        let written: Vec<_> = commit.streams.iter().map(|one| one.expected != one.next).collect();
        for event in &mut commit.events {
            event.stream = written.iter().take(event.stream).filter(|one| **one).count();
        }
        commit.streams.retain(|one| one.expected != one.next || !one.unique.is_empty());
        commit
    }
}

#[derive(Debug, Default)]
pub(crate) struct CallsConflictSuccess;

impl Fault for CallsConflictSuccess {
    fn answers(&self, commit: &Commit, answer: Answer) -> Answer {
        match answer {
            Err(StoreError::Conflict { .. }) => Ok(Committed::Fresh(commit.record(None))),
            other => other,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct SortsEventsByStream;

impl Fault for SortsEventsByStream {
    fn taken(&self, mut commit: Commit) -> Commit {
        commit.events.sort_by_key(|event| event.stream);
        commit
    }
}

/// Events first, the record in a transaction of its own.
#[derive(Debug, Default)]
pub(crate) struct CommitsInTwoSteps;

#[async_trait]
impl Fault for CommitsInTwoSteps {
    async fn commits(
        &self,
        store: &MemoryStore,
        commit: Commit,
        projections: &Projections<Tables>,
    ) -> Answer {
        let mut record_only = commit.clone();
        record_only.events.clear();
        for write in &mut record_only.streams {
            write.expected = write.next;
            write.unique.clear();
        }
        let mut events_only = commit;
        events_only.meta.key = None;
        store.commit(events_only, projections).await?;
        tokio::task::yield_now().await;
        store.commit(record_only, projections).await
    }
}
