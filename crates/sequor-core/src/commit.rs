//! All that must become true together.

use crate::canonical::Json;
use crate::error::Invalid;
use crate::event::EventName;
use crate::fingerprint::Fingerprint;
use crate::limits::Limits;
use crate::meta::{CommandId, CommandMeta};
use crate::names::Name;
use crate::record::{Record, RecordState, StreamVersion};
use crate::stream::{Position, StreamId, Version};
use crate::unique::UniqueChange;

/// One command with everything that follows from it, written in one transaction or not at all:
/// the command row, the idempotency record, events, versions, unique keys, projection rows.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Who asked, for whom, when.
    pub meta: CommandMeta,
    /// The command's stable name.
    pub name: Name,
    /// What was asked.
    pub payload: Json,
    /// What a retry under the same key must match. Invariant: there is one if there is a key.
    pub fingerprint: Option<Fingerprint>,
    /// What the caller gets, now and on a replay.
    pub output: Json,
    /// Every aggregate that the command read or wrote, sorted, each once.
    pub streams: Vec<StreamWrite>,
    /// In the order in which they happen.
    pub events: Vec<NewEvent>,
}

/// An aggregate in a commit. Its version must still be `expected`, even when nothing happens to
/// it: that is how a decision on several aggregates is safe from write skew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamWrite {
    /// Which aggregate.
    pub stream: StreamId,
    /// The version that the decision was made on.
    pub expected: Version,
    /// The command that must have made that version, where this was not yet certain when the
    /// decision was made; any other may come to the same number. `None`: whoever made it.
    pub after: Option<CommandId>,
    /// The version after the commit.
    pub next: Version,
    /// What happens to its unique keys.
    pub unique: Vec<UniqueChange>,
}

/// An event that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// The aggregate it happens to: an index into [`Commit::streams`].
    pub stream: usize,
    /// Its place in the stream.
    pub version: Version,
    /// What happens.
    pub name: EventName,
    /// The particulars.
    pub payload: Json,
}

impl Commit {
    /// What is remembered of the command once its last event has a position.
    #[must_use]
    pub fn record(&self, position: Option<Position>) -> Record {
        let after = |write: &StreamWrite| StreamVersion {
            stream: write.stream.clone(),
            version: write.next,
        };
        Record {
            command_id: self.meta.command_id,
            command_name: self.name.clone(),
            fingerprint: self.fingerprint,
            actor: self.meta.actor.clone(),
            recorded_at: self.meta.time,
            streams: self.streams.iter().map(after).collect(),
            position,
            output: self.output.clone(),
            state: RecordState::Completed,
        }
    }
}

/// One aggregate's part in a commit, before it is checked.
#[derive(Clone, Debug)]
pub struct StreamDraft {
    /// Which aggregate.
    pub stream: StreamId,
    /// The version that the decision was made on.
    pub expected: Version,
    /// The command that must have made that version, where this is not yet certain.
    pub after: Option<CommandId>,
    /// What happens to its unique keys.
    pub unique: Vec<UniqueChange>,
}

/// A commit's parts, before they are checked.
#[derive(Clone, Debug)]
pub struct CommitDraft {
    /// Who asked, for whom, when.
    pub meta: CommandMeta,
    /// The command's stable name.
    pub name: Name,
    /// What was asked.
    pub payload: Json,
    /// What a retry under the same key must match.
    pub fingerprint: Option<Fingerprint>,
    /// What the caller gets.
    pub output: Json,
    /// The aggregates, each once, in any order.
    pub streams: Vec<StreamDraft>,
    /// The events with the index of their aggregate in `streams`, in order.
    pub events: Vec<(usize, EventName, Json)>,
}

impl CommitDraft {
    /// Checks the bounds, sorts the streams and numbers the events.
    ///
    /// # Errors
    /// [`Invalid::TooLarge`] or [`Invalid::TooMany`] when a bound of `limits` is passed,
    /// [`Invalid::StreamTwice`] when an aggregate is in it twice, [`Invalid::TenantsDiffer`] when
    /// one belongs to another tenant.
    pub fn check(self, limits: &Limits) -> Result<Commit, Invalid> {
        check_sizes(&self, limits)?;
        if self.streams.iter().any(|draft| draft.stream.tenant != self.meta.tenant) {
            return Err(Invalid::TenantsDiffer);
        }
        let (mut streams, sorted_at) = sort_streams(self.streams)?;
        let events = number_events(&mut streams, &sorted_at, self.events)?;
        Ok(Commit {
            meta: self.meta,
            name: self.name,
            payload: self.payload,
            fingerprint: self.fingerprint,
            output: self.output,
            streams,
            events,
        })
    }
}

/// The aggregates in their order, and where each draft has gone.
fn sort_streams(drafts: Vec<StreamDraft>) -> Result<(Vec<StreamWrite>, Vec<usize>), Invalid> {
    let mut drafts: Vec<(usize, StreamDraft)> = drafts.into_iter().enumerate().collect();
    drafts.sort_by(|(_, one), (_, two)| one.stream.cmp(&two.stream));
    let twice = drafts.array_windows().find(|[(_, one), (_, two)]| one.stream == two.stream);
    if let Some([(_, one), _]) = twice {
        return Err(Invalid::StreamTwice { stream: one.stream.clone() });
    }
    let mut sorted_at = vec![0; drafts.len()];
    for (to, (from, _)) in drafts.iter().enumerate() {
        if let Some(place) = sorted_at.get_mut(*from) {
            *place = to;
        }
    }
    let open = |(_, draft): (usize, StreamDraft)| StreamWrite {
        stream: draft.stream,
        expected: draft.expected,
        after: draft.after,
        next: draft.expected,
        unique: draft.unique,
    };
    Ok((drafts.into_iter().map(open).collect(), sorted_at))
}

fn number_events(
    streams: &mut [StreamWrite],
    sorted_at: &[usize],
    events: Vec<(usize, EventName, Json)>,
) -> Result<Vec<NewEvent>, Invalid> {
    let number = |(draft, name, payload): (usize, EventName, Json)| {
        let stream = *sorted_at.get(draft).ok_or(Invalid::EventWithoutStream)?;
        let write = streams.get_mut(stream).ok_or(Invalid::EventWithoutStream)?;
        write.next = write.next.next();
        Ok(NewEvent { stream, version: write.next, name, payload })
    };
    events.into_iter().map(number).collect()
}

fn check_sizes(draft: &CommitDraft, limits: &Limits) -> Result<(), Invalid> {
    at_most("events", draft.events.len(), limits.events_max)?;
    at_most("streams", draft.streams.len(), limits.streams_max)?;
    let events = draft.events.iter().map(|(_, _, payload)| ("event", payload));
    let payloads = [("command", &draft.payload), ("output", &draft.output)].into_iter();
    let mut all = 0;
    for (what, json) in payloads.chain(events) {
        let bytes = json.as_str().len();
        fits(what, bytes, limits.payload_bytes_max)?;
        all += bytes;
    }
    fits("commit", all, limits.commit_bytes_max)
}

fn at_most(what: &'static str, count: usize, max: usize) -> Result<(), Invalid> {
    if count > max { Err(Invalid::TooMany { what, count, max }) } else { Ok(()) }
}

fn fits(what: &'static str, bytes: usize, max: usize) -> Result<(), Invalid> {
    if bytes > max { Err(Invalid::TooLarge { what, bytes, max }) } else { Ok(()) }
}
