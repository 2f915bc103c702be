//! What most commands are, alone in their batch: something happens to one stream, and to no unique
//! value. A shorter call does the same with fewer statements; what it cannot decide is left to the
//! call for batches.

use sequor_core::{Commit, StreamId, StreamWrite};

use super::batch::{Call, Failure};
use super::verdicts::{Judged, judged};
use crate::connection::Session;
use crate::error::{is_archived, is_blocked};
use crate::partitions::PartitionLock;
use crate::row::{self, partition_number, streams_text};

pub(crate) const COMMIT_ONE: &str = include_str!("../sql/commit_one.sql");

/// The stream of a commit that the short call can make true.
pub(crate) fn only_stream(commit: &Commit) -> Option<&StreamWrite> {
    match commit.streams.as_slice() {
        [write] if write.unique.is_empty() && !commit.events.is_empty() => Some(write),
        _ => None,
    }
}

/// The short call; `None` where the other one must decide.
pub(crate) async fn call_commit_one(
    commit: &Commit,
    write: &StreamWrite,
    (lock, call): (PartitionLock, Call),
    session: &mut Session,
) -> Result<Option<Judged>, Failure> {
    let (meta, StreamId { tenant, aggregate, id }) = (&commit.meta, &write.stream);
    let events = commit.events.iter();
    let statement = session
        .statement(COMMIT_ONE)
        .bind(i32::try_from(call.wait.as_millis()).unwrap_or(i32::MAX))
        .bind(lock.key)
        .bind(*tenant.as_uuid())
        .bind(partition_number(lock.partition))
        .bind(meta.command_id.0)
        .bind(meta.key.as_ref().map(|key| key.as_str()))
        .bind(commit.name.as_str())
        .bind(commit.payload.as_str())
        .bind(commit.fingerprint.as_ref().map(|one| one.as_bytes().as_slice()))
        .bind(commit.output.as_str())
        .bind(meta.actor.as_ref().map(|actor| actor.as_str()))
        .bind(meta.correlation_id.0)
        .bind(meta.causation_id)
        .bind(chrono::DateTime::from(meta.time))
        .bind(streams_text(&commit.record(None).streams))
        .bind(aggregate.as_str())
        .bind(id.as_str())
        .bind(row::signed(write.expected.get()))
        .bind(write.after.map(|maker| maker.0))
        .bind(Vec::from_iter(events.clone().map(|event| event.name.name)))
        .bind(Vec::from_iter(events.clone().map(|event| row::schema(event.name.schema_version))))
        .bind(Vec::from_iter(events.map(|event| event.payload.as_str())));
    match statement.fetch_optional(&mut session.postgres).await {
        // Its key was known, and was archived before it could be read.
        Ok(None) => Ok(None),
        Ok(Some(row)) => {
            let judged = judged(&[row], std::iter::once(commit), &[&write.stream]);
            Ok(judged.map_err(Failure::Answer)?.pop())
        }
        Err(error) if is_blocked(&error) => Ok(Some(Judged::Blocked)),
        Err(error) if is_archived(&error) => Ok(None),
        Err(error) => Err(Failure::Statement(error)),
    }
}
