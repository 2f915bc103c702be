//! What a step does with a page of the log: pure.

use std::collections::HashMap;

use sequor_core::checkpoint::{Progress, Standing, StreamStanding};
use sequor_core::{StoredEvent, StreamId, Wants};

use crate::error::Disorder;

/// What is shown to the projection, and what becomes true with its rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan<'e> {
    pub(crate) shown: Vec<&'e StoredEvent>,
    pub(crate) progress: Progress,
}

/// The streams of a page, each once.
pub(crate) fn streams_of(page: &[StoredEvent]) -> Vec<StreamId> {
    let mut streams: Vec<StreamId> = page.iter().map(|event| event.stream.clone()).collect();
    streams.sort_unstable();
    streams.dedup();
    streams
}

/// Whether each event follows the one before it in its stream; events behind a parked one wait.
///
/// # Errors
/// [`Disorder`] names the first event that is one too many or leaves a gap.
pub(crate) fn plan<'e>(
    page: &'e [StoredEvent],
    standing: &Standing,
    wants: &Wants,
) -> Result<Plan<'e>, Disorder> {
    let mut moved = HashMap::<&StreamId, StreamStanding>::new();
    let mut shown = Vec::with_capacity(page.len());
    for event in page {
        let known = || standing.streams.get(&event.stream).cloned().unwrap_or_default();
        let stands = moved.entry(&event.stream).or_insert_with(known);
        if stands.parked.is_some() {
            continue;
        }
        let expected = stands.version.next();
        if event.version != expected {
            let (position, stream) = (event.position, event.stream.clone());
            return Err(Disorder { position, stream, expected, found: event.version });
        }
        stands.version = event.version;
        if wants.include(event) {
            shown.push(event);
        }
    }
    moved.retain(|_, stands| stands.parked.is_none());
    let mut streams: Vec<_> =
        moved.into_iter().map(|(stream, stands)| (stream.clone(), stands)).collect();
    // In one order everywhere, so that no two steps wait for each other.
    streams.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let position = page.last().map(|event| event.position);
    Ok(Plan { shown, progress: Progress { position, streams } })
}
