//! Judges commits in order, and numbers those that may become true.

use sequor_core::admission::{Admission, admit};
use sequor_core::{Commit, Invalid, Name, NewEvent, Position, Record, StoreError, StoredEvent};

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
    let last = (!commit.events.is_empty()).then(|| Position::new(counters.position));
    let record = commit.record(last);
    ledger.apply(commit, unique, &record);
    Judged::Fresh(Numbered { number: counters.number, first_position, record })
}

/// A commit's events as they will be stored.
///
/// # Errors
/// [`StoreError::Invalid`] when an event belongs to no stream of its commit.
pub(crate) fn stored_events(
    commit: &Commit,
    first_position: u64,
) -> Result<Vec<StoredEvent>, StoreError> {
    let store = |(position, event): (u64, &NewEvent)| {
        let write = commit.streams.get(event.stream);
        Ok(StoredEvent {
            position: Position::new(position),
            stream: write.ok_or(Invalid::EventWithoutStream)?.stream.clone(),
            version: event.version,
            name: Name::new(event.name.name)?,
            schema_version: event.name.schema_version,
            payload: event.payload.clone(),
            meta: commit.meta.clone(),
        })
    };
    (first_position..).zip(&commit.events).map(store).collect()
}
