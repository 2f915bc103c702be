//! Reading what is stored: today's shape straight, an older one by its evolution.

use std::iter::FusedIterator;

use super::{DecodeError, Event};
use crate::canonical::Json;
use crate::error::Invalid;
use crate::names::Name;

/// What a stored event is read as: usually one event, none or several where its type says so.
#[derive(Clone, Debug)]
pub struct Decoded<E>(Events<E>);

#[derive(Clone, Debug)]
enum Events<E> {
    /// The usual case needs no memory of its own.
    One(Option<E>),
    Several(std::vec::IntoIter<E>),
}

impl<E> Decoded<E> {
    pub(super) const fn one(event: E) -> Self {
        Self(Events::One(Some(event)))
    }

    const fn none() -> Self {
        Self(Events::One(None))
    }

    fn several(events: Vec<E>) -> Self {
        Self(Events::Several(events.into_iter()))
    }
}

impl<E> Iterator for Decoded<E> {
    type Item = E;

    fn next(&mut self) -> Option<E> {
        match &mut self.0 {
            Events::One(event) => event.take(),
            Events::Several(events) => events.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = match &self.0 {
            Events::One(event) => usize::from(event.is_some()),
            Events::Several(events) => events.len(),
        };
        (count, Some(count))
    }
}

impl<E> ExactSizeIterator for Decoded<E> {}
impl<E> FusedIterator for Decoded<E> {}

/// Reads a payload that was stored under a name and a schema version, as
/// [`StoredEvent::decode_all`](super::StoredEvent::decode_all) does.
///
/// # Errors
/// As there.
pub fn read<E: Event>(
    name: &Name,
    schema_version: u32,
    payload: &Json,
) -> Result<Decoded<E>, DecodeError> {
    match E::NAMES.iter().find(|known| known.name == name.as_str()) {
        Some(known) if known.schema_version == schema_version => {
            E::decode(*known, payload.as_str()).map(Decoded::one)
        }
        Some(_) | None => evolve(name, schema_version, payload),
    }
}

/// Reads an event that is not of today's shape.
fn evolve<E: Event>(
    stored: &Name,
    stored_version: u32,
    payload: &Json,
) -> Result<Decoded<E>, DecodeError> {
    let evolution = E::EVOLUTION;
    let name = evolution.newest_name(stored.as_str());
    let current = E::NAMES.iter().find(|known| known.name == name);
    let (mut version, mut payload) = (stored_version, payload.clone());
    // Each step starts from another version, so there are no more rounds than steps.
    for _ in 0..=evolution.steps.len() {
        if let Some(current) = current.filter(|current| current.schema_version <= version) {
            if current.schema_version < version {
                break;
            }
            return E::decode(*current, payload.as_str()).map(Decoded::one);
        }
        let is_here = |from: &str, at: u32| from == name && at == version;
        if let Some(split) = evolution.splits.iter().find(|one| is_here(one.name, one.version)) {
            let events = (split.read)(&payload).map_err(malformed(split.name))?;
            return Ok(Decoded::several(events));
        }
        let step = evolution.steps.iter().find(|one| is_here(one.name, one.from));
        let Some(step) = step else { break };
        payload = (step.raise)(&payload).map_err(malformed(step.name))?;
        version = version.saturating_add(1);
    }
    unread(stored, stored_version, name)
}

/// What nothing leads on from.
fn unread<E: Event>(
    stored: &Name,
    stored_version: u32,
    newest: &str,
) -> Result<Decoded<E>, DecodeError> {
    let read = E::EVOLUTION.starts().filter(|start| start.name == newest);
    let newest_known = E::NAMES.iter().copied().filter(|known| known.name == newest).chain(read);
    let name = stored.clone();
    match newest_known.map(|known| known.schema_version).max() {
        Some(known) => Err(DecodeError::OtherSchema { name, stored: stored_version, known }),
        None if E::EVOLUTION.is_skipped(name.as_str()) => Ok(Decoded::none()),
        None => Err(DecodeError::UnknownName { name }),
    }
}

fn malformed(name: &'static str) -> impl Fn(Invalid) -> DecodeError {
    move |invalid| {
        let reason =
            if let Invalid::Json { reason } = invalid { reason } else { invalid.to_string() };
        DecodeError::Malformed { name, reason }
    }
}
