//! Every event shape ever released, kept in a file and read again by each build.

mod entry;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{env, fmt, fs, io};

use sequor_core::event::read;
use sequor_core::{Event, Name};

use entry::{Entry, Place};
use shape::Shape;

/// Set to `update`, it lets [`EventsLock::check`] add what is new.
const VARIABLE: &str = "SEQUOR_EVENTS_LOCK";

/// Proves that this build reads every event that a released one has written.
///
/// The file holds a payload of each event and schema version, a line each; commit it. The check
/// reads *all* lines with this build, and compares the shapes of today's events with the lines
/// of their version. It fails when
///
/// * an event of a type has no sample, or a sample has no line yet;
/// * a shape has changed under the same schema version;
/// * a line can no longer be read, or belongs to no type;
/// * a line is gone whose version is still below today's and has a step.
///
/// `SEQUOR_EVENTS_LOCK=update cargo test` adds lines for what is new. It never changes or removes
/// one: a shape that no release has written may be taken out by hand.
///
/// What it cannot see: a member that no sample shows, a changed meaning of an equal shape (cents
/// that became euros), and events of types that are not given to it.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/turnstile.rs"));
/// use sequor_testkit::EventsLock;
///
/// # fn main() {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("events.lock");
/// # let lock = || EventsLock::at(&path);
/// // In a test: let lock = || EventsLock::at("events.lock");
/// lock().samples([Turned::Paid { cents: 100 }, Turned::Passed]).update();
/// lock().samples([Turned::Paid { cents: 250 }, Turned::Passed]).check();
/// # }
/// ```
#[must_use = "nothing is checked before `check`"]
pub struct EventsLock {
    path: PathBuf,
    types: Vec<Type>,
    samples: Vec<Entry>,
    wrong: Vec<String>,
}

/// Today's events that a line is read as, or why it is not.
type Read = Result<Vec<Entry>, String>;

/// What an event type says of itself.
struct Type {
    /// Whether it reads a line, and if so what today's events are made of it.
    read: fn(&Entry) -> Option<Read>,
    /// Older shapes that it has steps for, by all their names.
    starts: Vec<(Vec<&'static str>, u32)>,
}

impl EventsLock {
    /// The file, from the folder of the crate under test; usually `events.lock`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), types: Vec::new(), samples: Vec::new(), wrong: Vec::new() }
    }

    /// An event type, with a sample of each of its events, and more where members are optional:
    /// one that has them, one that lacks them.
    pub fn samples<E: Event>(mut self, samples: impl IntoIterator<Item = E>) -> Self {
        if let Err(reason) = E::EVOLUTION.check(E::NAMES) {
            self.wrong.push(reason.to_string());
        }
        let samples: Vec<Result<Entry, String>> =
            samples.into_iter().map(|event| Entry::of(&event)).collect();
        for known in E::NAMES {
            let is_of = |one: &Result<Entry, String>| {
                one.as_ref().is_ok_and(|entry| entry.place.name == known.name)
            };
            if !samples.iter().any(is_of) {
                self.wrong.push(format!("there is no sample of `{}`", known.name));
            }
        }
        for sample in samples {
            match sample {
                Ok(entry) => self.samples.push(entry),
                Err(reason) => self.wrong.push(reason),
            }
        }
        self.types.push(Type { read: read_line::<E>, starts: starts::<E>() });
        self
    }

    /// Checks the file; adds what is new where `SEQUOR_EVENTS_LOCK` is `update`.
    ///
    /// # Panics
    /// With all that is wrong, and what to do about it.
    #[track_caller]
    pub fn check(self) {
        if env::var(VARIABLE).is_ok_and(|value| value == "update") {
            return self.update();
        }
        let lines = self.lines();
        let mut wrong = self.compared(&lines);
        for entry in self.missing(&lines) {
            let run = format!("{VARIABLE}=update cargo test");
            wrong.push(format!("{} is not in the file: run `{run}`, and commit", entry.place));
        }
        self.report(&wrong);
    }

    /// Adds what is new, and checks the rest.
    ///
    /// # Panics
    /// With all that is wrong, and what to do about it; the file then stays as it is.
    #[track_caller]
    pub fn update(self) {
        let mut lines = self.lines();
        self.report(&self.compared(&lines));
        let missing = self.missing(&lines);
        if !missing.is_empty() {
            lines.extend(missing);
            let written = fs::write(&self.path, entry::text(&lines));
            written.unwrap_or_else(|error| {
                panic!("{} cannot be written: {error}", self.path.display())
            });
        }
    }

    #[track_caller]
    fn lines(&self) -> BTreeSet<Entry> {
        let path = self.path.display();
        match fs::read_to_string(&self.path) {
            Ok(text) => entry::lines(&text).unwrap_or_else(|why| panic!("{path}: {why}")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => panic!("{path} cannot be read: {error}"),
        }
    }

    /// The samples whose shape no line of their event and version has yet, one a shape.
    fn missing(&self, lines: &BTreeSet<Entry>) -> Vec<Entry> {
        let place = |entry: &Entry| (entry.place.clone(), entry.shape());
        let mut known: BTreeSet<(Place, Shape)> = lines.iter().map(place).collect();
        self.samples.iter().filter(|sample| known.insert(place(sample))).cloned().collect()
    }

    /// What is wrong between the lines and this build.
    fn compared(&self, lines: &BTreeSet<Entry>) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        let mut today = shapes(&self.samples);
        let locked = shapes(lines);
        for line in lines {
            match self.types.iter().find_map(|one| (one.read)(line)) {
                None => wrong.push(format!("{} belongs to no event type: {LOST}", line.place)),
                Some(Err(reason)) => {
                    wrong.push(format!("{} can no longer be read: {reason}", line.place));
                }
                Some(Ok(read)) => {
                    read.iter().filter(|one| one.place == line.place).for_each(|one| {
                        let shape = today.entry(&line.place).or_insert_with(|| one.shape());
                        *shape = shape.joined(&one.shape());
                    })
                }
            }
        }
        for (place, shape) in &today {
            if let Some(before) = locked.get(place).filter(|before| !before.is_like(shape)) {
                wrong.push(format!("{place} has changed: {before} was {CHANGED} {shape}"));
            }
        }
        for (names, version) in self.types.iter().flat_map(|one| &one.starts) {
            let is_kept =
                |place: &&Place| place.version == *version && names.contains(&place.name.as_str());
            if !locked.keys().any(is_kept) {
                let name = names.first().unwrap_or(&"");
                wrong.push(format!("`{name}` {version} has steps, and no line: {GONE}"));
            }
        }
        wrong
    }

    #[track_caller]
    fn report(&self, wrong: &[String]) {
        let path = self.path.display();
        assert!(wrong.is_empty(), "{path} and this build disagree:\n* {}", wrong.join("\n* "));
    }
}

const LOST: &str = "give its type to the check; for an event that is gone, say `was`, `split`, or \
                    `skip` with its whole name";
const CHANGED: &str = "released, raise its version and add a step, instead of";
const GONE: &str = "bring the line back from the file's history, or write one by hand";

/// The shapes of all payloads of each event and version, joined.
fn shapes<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> BTreeMap<&'e Place, Shape> {
    let mut shapes: BTreeMap<&Place, Shape> = BTreeMap::new();
    for entry in entries {
        let shape = shapes.entry(&entry.place).or_insert_with(|| entry.shape());
        *shape = shape.joined(&entry.shape());
    }
    shapes
}

fn starts<E: Event>() -> Vec<(Vec<&'static str>, u32)> {
    let names_of = |newest: &'static str| {
        let earlier = E::EVOLUTION.earlier_names(newest);
        std::iter::once(newest).chain(earlier).collect()
    };
    E::EVOLUTION.starts().map(|start| (names_of(start.name), start.schema_version)).collect()
}

/// Reads a line as events of `E`, and writes them again; nothing if it is none of them.
fn read_line<E: Event>(line: &Entry) -> Option<Read> {
    let Place { name, version } = &line.place;
    let newest = E::EVOLUTION.newest_name(name);
    let is_known = E::NAMES.iter().any(|known| known.name == newest);
    if !is_known && !E::EVOLUTION.is_dropped(name) {
        E::EVOLUTION.starts().find(|start| start.name == newest)?;
    }
    let events = Name::new(name.clone()).map_err(|invalid| invalid.to_string());
    let events = events.and_then(|name| {
        read::<E>(&name, *version, &line.payload).map_err(|error| error.to_string())
    });
    Some(events.and_then(|events| events.map(|event| Entry::of(&event)).collect()))
}

impl fmt::Debug for EventsLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventsLock").field("path", &self.path).finish_non_exhaustive()
    }
}
