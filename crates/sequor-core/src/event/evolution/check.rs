//! Whether an evolution leads everywhere that it says.

use super::Evolution;
use crate::event::EventName;

/// What is wrong with an evolution, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvolutionError {
    /// The chain has a hole.
    #[error("no step leads event `{name}` on from schema {version}: add it to the chain")]
    Gap {
        /// Of which event.
        name: &'static str,
        /// Where the chain breaks.
        version: u32,
    },
    /// Two steps, splits or renames start from the same place.
    #[error("event `{name}` goes two ways from schema {version}: leave one")]
    Fork {
        /// Of which event.
        name: &'static str,
        /// Where they part.
        version: u32,
    },
    /// A step starts where there is nothing older to read.
    #[error(
        "a step of event `{name}` starts at schema {version}: steps start at 1, and below {end}"
    )]
    OutOfRange {
        /// Of which event.
        name: &'static str,
        /// Where it starts.
        version: u32,
        /// The version that needs no step.
        end: u32,
    },
    /// An event is renamed to a name that nothing carries.
    #[error("event `{was}` is renamed to `{is}`, which no event carries")]
    RenamedToNothing {
        /// The earlier name.
        was: &'static str,
        /// The name that should be.
        is: &'static str,
    },
    /// A name is given up and still used: by an event, by two renames, by a rename and a step.
    #[error("event `{name}` is said to be gone (renamed or skipped), and is still in use")]
    StillInUse {
        /// Which one.
        name: &'static str,
    },
}

pub(super) fn check<E>(
    evolution: &Evolution<E>,
    names: &[EventName],
) -> Result<(), EvolutionError> {
    check_names(evolution, names)?;
    let starts: Vec<EventName> = evolution.starts().collect();
    for (at, start) in starts.iter().enumerate() {
        let EventName { name, schema_version: version } = *start;
        if starts.iter().take(at).any(|other| other == start) {
            return Err(EvolutionError::Fork { name, version });
        }
    }
    for EventName { name, schema_version: version } in &starts {
        let (name, version, end) = (*name, *version, end(evolution, names, name)?);
        if version == 0 || version >= end {
            return Err(EvolutionError::OutOfRange { name, version, end });
        }
        let is_start = |version| starts.contains(&EventName { name, schema_version: version });
        if let Some(version) = (1..version).chain(version + 1..end).find(|one| !is_start(*one)) {
            return Err(EvolutionError::Gap { name, version });
        }
    }
    Ok(())
}

/// Renames lead to today's events, and what is gone is gone.
fn check_names<E>(evolution: &Evolution<E>, names: &[EventName]) -> Result<(), EvolutionError> {
    let is_carried = |name: &str| names.iter().any(|known| known.name == name);
    let is_read = |name: &str| evolution.starts().any(|start| start.name == name);
    for (at, rename) in evolution.renames.iter().enumerate() {
        let (was, is) = (rename.was, rename.is);
        if !is_carried(is) {
            return Err(EvolutionError::RenamedToNothing { was, is });
        }
        let is_twice = evolution.renames.iter().take(at).any(|other| other.was == was);
        if is_twice || is_carried(was) || is_read(was) || evolution.is_dropped(was) {
            return Err(EvolutionError::StillInUse { name: was });
        }
    }
    match evolution.skips.iter().find(|name| is_carried(name) || is_read(name)) {
        Some(name) => Err(EvolutionError::StillInUse { name }),
        None => Ok(()),
    }
}

/// The version of an event that needs no step: today's, or the one after the last split of an event
/// that nothing carries any more.
fn end<E>(
    evolution: &Evolution<E>,
    names: &[EventName],
    name: &'static str,
) -> Result<u32, EvolutionError> {
    if let Some(known) = names.iter().find(|known| known.name == name) {
        return Ok(known.schema_version);
    }
    let of_name = evolution.starts().filter(|start| start.name == name);
    let last = of_name.map(|start| start.schema_version).max().unwrap_or_default();
    let is_split = |split: &super::Split<E>| split.name == name && split.version == last;
    match last.checked_add(1) {
        Some(end) if evolution.splits.iter().any(is_split) => Ok(end),
        Some(version) => Err(EvolutionError::Gap { name, version }),
        None => Err(EvolutionError::OutOfRange { name, version: last, end: last }),
    }
}
