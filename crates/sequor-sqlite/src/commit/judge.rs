//! Judges commits in order, and numbers those that may become true.

use sequor_core::admission::{Admission, admit};
use sequor_core::{Commit, Position, Record, RecordState, StoreError, StoredEvent, StreamVersion};

use super::ledger::BatchLedger;
use crate::connection::Counters;

/// What became of a commit before anything of it is true.
#[derive(Debug)]
pub(crate) enum Judged {
    /// This record answers.
    Known(Record),
    /// May become true, with this number and record.
    Fresh(Numbered),
    /// May not.
    Refused(StoreError),
}

/// A commit's numbers and its record, once it is true.
#[derive(Debug)]
pub(crate) struct Numbered {
    /// Names its command row.
    pub(crate) number: u64,
    /// The position of its first event.
    pub(crate) first_position: u64,
    /// What a replay will answer.
    pub(crate) record: Record,
}

/// Judges the next commit of a batch, draws its numbers and takes it into the view.
pub(crate) fn judge(commit: &Commit, ledger: &mut BatchLedger, counters: &mut Counters) -> Judged {
    let unique = match admit(commit, ledger) {
        Err(refusal) => return Judged::Refused(refusal),
        Ok(Admission::Known(record)) => return Judged::Known(*record),
        Ok(Admission::Fresh(unique)) => unique,
    };
    let first_position = counters.position + 1;
    counters.number += 1;
    counters.position += commit.events.len() as u64;
    let record = record_of(commit, counters.position);
    ledger.apply(commit, unique, &record);
    Judged::Fresh(Numbered { number: counters.number, first_position, record })
}

fn record_of(commit: &Commit, last_position: u64) -> Record {
    let version = |write: &sequor_core::StreamWrite| StreamVersion {
        stream: write.stream.clone(),
        version: write.next,
    };
    Record {
        command_id: commit.meta.command_id,
        command_name: commit.name.clone(),
        fingerprint: commit.fingerprint,
        actor: commit.meta.actor.clone(),
        recorded_at: commit.meta.time,
        streams: commit.streams.iter().map(version).collect(),
        position: (!commit.events.is_empty()).then(|| Position::new(last_position)),
        output: commit.output.clone(),
        state: RecordState::Completed,
    }
}

/// A commit's events as they will be stored.
///
/// # Errors
/// [`StoreError::Invalid`] when an event belongs to no stream of its commit.
pub(crate) fn stored_events(
    commit: &Commit,
    first_position: u64,
) -> Result<Vec<StoredEvent>, StoreError> {
    let store = |(position, event): (u64, &sequor_core::NewEvent)| {
        let write = commit.streams.get(event.stream);
        Ok(StoredEvent {
            position: Position::new(position),
            stream: write.ok_or(sequor_core::Invalid::EventWithoutStream)?.stream.clone(),
            version: event.version,
            name: sequor_core::Name::new(event.name.name)?,
            schema_version: event.name.schema_version,
            payload: event.payload.clone(),
            meta: commit.meta.clone(),
        })
    };
    (first_position..).zip(&commit.events).map(store).collect()
}
