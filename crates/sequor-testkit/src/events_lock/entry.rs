//! A line of the file: name, schema version, payload.

use std::collections::BTreeSet;
use std::fmt;

use sequor_core::{Event, Json};

use super::shape::Shape;

const HEAD: &str = "\
# Every event shape ever released: name, schema version, a payload. Commit this file.
# `SEQUOR_EVENTS_LOCK=update cargo test` adds what is new; lines of a release stay for ever.
";

/// An event and a version of its payload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) version: u32,
}

/// A payload that has been, or may be, in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) payload: Json,
}

impl Entry {
    pub(super) fn of<E: Event>(event: &E) -> Result<Self, String> {
        let name = event.name();
        let place = Place { name: name.name.to_owned(), version: name.schema_version };
        match event.encode() {
            Ok(payload) => Ok(Self { place, payload }),
            Err(invalid) => Err(format!("{place} cannot be written: {invalid}")),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        self.payload.read().map_or(Shape::Unknown, |value| Shape::of(&value))
    }

    fn read(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ' ');
        let (name, version, payload) = (parts.next()?, parts.next()?, parts.next()?);
        let place = Place { name: name.to_owned(), version: version.parse().ok()? };
        Some(Self { place, payload: Json::parse(payload).ok()? })
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |entry: &Self| (entry.place.clone(), entry.payload.to_string());
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.name, self.version)
    }
}

/// The file's lines; whatever begins with `#` is a comment.
pub(super) fn lines(text: &str) -> Result<BTreeSet<Entry>, String> {
    let numbered = text.lines().enumerate();
    let entries = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(at, line)| {
        Entry::read(line).ok_or_else(|| {
            format!("line {} is no name, schema version and payload in JSON", at + 1)
        })
    };
    entries.map(read).collect()
}

/// The file.
pub(super) fn text(entries: &BTreeSet<Entry>) -> String {
    let lines = entries.iter().map(|Entry { place: Place { name, version }, payload }| {
        format!("{name} {version} {payload}\n")
    });
    std::iter::once(HEAD.to_owned()).chain(lines).collect()
}
