//! What has become of events that were stored in earlier shapes: declared once, beside the event.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::canonical::Json;
use crate::error::Invalid;
use crate::event::EventName;

mod check;

pub use check::EvolutionError;

/// How events of earlier builds are read by this one. Usually written by `#[derive(Event)]`, from
/// `upcast`, `was`, `split` and `skip`.
///
/// Nothing stored is changed: an old event is brought up to date each time it is read, and one of
/// today's shape costs nothing more than without an evolution.
///
/// ```
/// use sequor_core::event::{Evolution, Step, raise};
/// use serde_json::{Value, json};
///
/// /// Version 2 says the currency.
/// fn in_euro(mut payload: Value) -> Value {
///     payload["currency"] = json!("EUR");
///     payload
/// }
///
/// # struct Paid;
/// const EVOLUTION: Evolution<Paid> = Evolution::NONE
///     .steps(&[Step { name: "paid", from: 1, raise: |payload| raise(payload, in_euro) }])
///     .skips(&["crm.*"]);
/// assert!(EVOLUTION.is_skipped("crm.noted"));
/// ```
pub struct Evolution<E: 'static> {
    pub(super) renames: &'static [Rename],
    pub(super) steps: &'static [Step],
    pub(super) splits: &'static [Split<E>],
    pub(super) skips: &'static [&'static str],
}

/// An event that is stored under an earlier name too.
///
/// Both names share one line of schema versions: `created` 1 is read as `opened` 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The earlier name.
    pub was: &'static str,
    /// Today's name.
    pub is: &'static str,
}

/// What brings a payload from one schema version to the next.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Of which event, by its newest name.
    pub name: &'static str,
    /// The version that it starts from.
    pub from: u32,
    /// Gives the payload of version `from + 1`; see [`raise`].
    pub raise: fn(&Json) -> Result<Json, Invalid>,
}

/// What reads one stored event as none, one or several of today's.
pub struct Split<E: 'static> {
    /// Of which event: a name that nothing carries any more, or an older version of one.
    pub name: &'static str,
    /// Which version of its payload.
    pub version: u32,
    /// Gives today's events, in their order; see [`split`].
    pub read: fn(&Json) -> Result<Vec<E>, Invalid>,
}

/// Runs a step: any function from what can be read to what can be written. From and to
/// `serde_json::Value` it is a step from JSON to JSON, in which integers stay exact; from an old
/// struct to a newer one it is typed.
///
/// A step is total, as `apply` is: what is stored has happened.
///
/// # Errors
/// [`Invalid::Json`] when the payload has another shape, or what was made of it has no JSON.
pub fn raise<Old: DeserializeOwned, New: Serialize>(
    payload: &Json,
    step: impl FnOnce(Old) -> New,
) -> Result<Json, Invalid> {
    Json::of(&step(payload.read()?))
}

/// Runs a split: any function from what can be read to today's events; an array, an `Option`, a
/// `Vec`.
///
/// # Errors
/// [`Invalid::Json`] when the payload has another shape.
pub fn split<Old: DeserializeOwned, Events: IntoIterator>(
    payload: &Json,
    split: impl FnOnce(Old) -> Events,
) -> Result<Vec<Events::Item>, Invalid> {
    Ok(split(payload.read()?).into_iter().collect())
}

impl<E: 'static> Evolution<E> {
    /// Nothing has changed yet.
    pub const NONE: Self = Self { renames: &[], steps: &[], splits: &[], skips: &[] };

    /// Earlier names of today's events.
    #[must_use]
    pub const fn renames(mut self, renames: &'static [Rename]) -> Self {
        self.renames = renames;
        self
    }

    /// Steps from version to version.
    #[must_use]
    pub const fn steps(mut self, steps: &'static [Step]) -> Self {
        self.steps = steps;
        self
    }

    /// Events that are read as none, one or several others.
    #[must_use]
    pub const fn splits(mut self, splits: &'static [Split<E>]) -> Self {
        self.splits = splits;
        self
    }

    /// Events that are passed over: a name, or the beginning of names and `*`. Their place in the
    /// stream still counts.
    #[must_use]
    pub const fn skips(mut self, skips: &'static [&'static str]) -> Self {
        self.skips = skips;
        self
    }

    /// Checks the declaration against the events that there are today.
    ///
    /// # Errors
    /// [`EvolutionError`] with the first thing that is wrong.
    pub fn check(&self, names: &[EventName]) -> Result<(), EvolutionError> {
        check::check(self, names)
    }

    /// Whether events of this name are passed over, by name or by its beginning.
    #[must_use]
    pub fn is_skipped(&self, name: &str) -> bool {
        let begins = |skip: &str| skip.strip_suffix('*').is_some_and(|it| name.starts_with(it));
        self.is_dropped(name) || self.skips.iter().any(|skip| begins(skip))
    }

    /// Whether events of this name are passed over by their whole name.
    #[must_use]
    pub fn is_dropped(&self, name: &str) -> bool {
        self.skips.contains(&name)
    }

    /// The newest name of an event.
    #[must_use]
    pub fn newest_name<'n>(&self, name: &'n str) -> &'n str {
        self.renames.iter().find(|rename| rename.was == name).map_or(name, |rename| rename.is)
    }

    /// The names under which an event was stored before.
    pub fn earlier_names(&self, newest: &str) -> impl Iterator<Item = &'static str> {
        let renames = self.renames.iter().filter(move |rename| rename.is == newest);
        renames.map(|rename| rename.was)
    }

    /// Each older shape that is read here: the starts of steps and splits.
    pub fn starts(&self) -> impl Iterator<Item = EventName> {
        let steps = self.steps.iter().map(|step| (step.name, step.from));
        let splits = self.splits.iter().map(|split| (split.name, split.version));
        steps.chain(splits).map(|(name, schema_version)| EventName { name, schema_version })
    }
}

impl<E: 'static> fmt::Debug for Evolution<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evolution")
            .field("renames", &self.renames)
            .field("starts", &self.starts().collect::<Vec<_>>())
            .field("skips", &self.skips)
            .finish()
    }
}

impl<E: 'static> fmt::Debug for Split<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
