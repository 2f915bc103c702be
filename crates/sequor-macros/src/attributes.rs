//! What `#[event(…)]` and `#[command(…)]` may say, and where.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::{Attribute, Error, Ident, LitInt, LitStr, Path, Result, Token, Type};

use crate::evolution::{self, Split, Step};

/// What an attribute is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Enum,
    Struct,
    Variant,
    Field,
}

impl Place {
    const fn words(self) -> &'static str {
        match self {
            Self::Enum => "an enum",
            Self::Struct => "a struct",
            Self::Variant => "a variant",
            Self::Field => "a field",
        }
    }
}

/// The keys that one derive knows, by place.
pub(crate) struct Grammar {
    /// The attribute, such as `event`.
    pub(crate) word: &'static str,
    keys: [(Place, &'static [&'static str]); 4],
}

pub(crate) const EVENT: Grammar = Grammar {
    word: "event",
    keys: [
        (Place::Enum, &["prefix", "split", "skip", "crate"]),
        (Place::Struct, EVENT_STRUCT),
        (Place::Variant, &["name", "version", "upcast", "was"]),
        (Place::Field, &[]),
    ],
};

const EVENT_STRUCT: &[&str] =
    &["name", "version", "prefix", "upcast", "was", "split", "skip", "crate"];

pub(crate) const COMMAND: Grammar = Grammar {
    word: "command",
    keys: [
        (Place::Enum, COMMAND_ENUM),
        (Place::Struct, COMMAND_STRUCT),
        (Place::Variant, &["name", "creates"]),
        (Place::Field, &["volatile"]),
    ],
};

const COMMAND_ENUM: &[&str] = &["prefix", "output", "rejection", "id", "validate", "crate"];
const COMMAND_STRUCT: &[&str] =
    &["name", "prefix", "output", "rejection", "id", "creates", "validate", "crate"];

impl Grammar {
    /// Reads the attributes of one place; every attribute is read, whatever is wrong with another.
    pub(crate) fn read(&self, attributes: &[Attribute], place: Place) -> Result<Options> {
        let mut options = Options::default();
        let mut errors = Errors::default();
        for attribute in attributes {
            if attribute.path().is_ident(self.word) {
                errors.keep(attribute.parse_nested_meta(|meta| {
                    self.check_key(&meta, place)?;
                    options.take(&meta)
                }));
            }
        }
        errors.finish().map(|()| options)
    }

    fn check_key(&self, meta: &ParseNestedMeta<'_>, place: Place) -> Result<()> {
        let known = self.places_of(&meta.path);
        if known.contains(&place) {
            return Ok(());
        }
        let word = self.word;
        let key = meta.path.get_ident().map(ToString::to_string);
        let key = key.unwrap_or_default();
        let here = place.words();
        if known.is_empty() {
            let keys = self.keys_on(place);
            return Err(
                meta.error(format!("`{word}` has no key `{key}`; on {here} it takes {keys}"))
            );
        }
        let there: Vec<_> = known.into_iter().map(Place::words).collect();
        let there = there.join(" or ");
        Err(meta.error(format!("`{key}` goes on {there}, not on {here}")))
    }

    fn places_of(&self, key: &Path) -> Vec<Place> {
        let takes = |keys: &[&str]| keys.iter().any(|known| key.is_ident(known));
        let places = self.keys.iter().filter(|(_, keys)| takes(keys));
        places.map(|&(place, _)| place).collect()
    }

    fn keys_on(&self, place: Place) -> String {
        let keys = self.keys.iter().filter(|(on, _)| *on == place);
        let keys: Vec<_> =
            keys.flat_map(|(_, keys)| keys.iter().map(|key| format!("`{key}`"))).collect();
        if keys.is_empty() {
            return "nothing".to_owned();
        }
        keys.join(", ")
    }
}

/// What the attributes of one place said.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) krate: Option<Path>,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) version: Option<u32>,
    pub(crate) output: Option<Type>,
    pub(crate) rejection: Option<Type>,
    pub(crate) id: Option<Ident>,
    pub(crate) creates: Option<Span>,
    pub(crate) validate: Option<Span>,
    pub(crate) volatile: Option<Span>,
    pub(crate) upcast: Vec<Step>,
    pub(crate) was: Vec<LitStr>,
    pub(crate) split: Vec<Split>,
    pub(crate) skip: Vec<LitStr>,
}

impl Options {
    /// Takes one key, known to be allowed where it is.
    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let is = |key| meta.path.is_ident(key);
        if is("crate") {
            set(&mut self.krate, meta, path)
        } else if is("prefix") {
            set(&mut self.prefix, meta, prefix)
        } else if is("name") {
            set(&mut self.name, meta, value)
        } else if is("version") {
            set(&mut self.version, meta, version)
        } else if is("output") {
            set(&mut self.output, meta, value)
        } else if is("rejection") {
            set(&mut self.rejection, meta, value)
        } else if is("id") {
            set(&mut self.id, meta, field)
        } else if is("creates") {
            set(&mut self.creates, meta, flag)
        } else if is("validate") {
            set(&mut self.validate, meta, flag)
        } else if is("upcast") {
            evolution::upcast(meta).map(|steps| self.upcast.extend(steps))
        } else if is("was") {
            evolution::was(meta).map(|name| self.was.push(name))
        } else if is("split") {
            evolution::split(meta).map(|split| self.split.push(split))
        } else if is("skip") {
            evolution::skip(meta).map(|names| self.skip.extend(names))
        } else {
            set(&mut self.volatile, meta, flag)
        }
    }
}

fn set<T>(
    slot: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    read: impl FnOnce(&ParseNestedMeta<'_>) -> Result<T>,
) -> Result<()> {
    let value = read(meta)?;
    if slot.replace(value).is_some() {
        return Err(Error::new_spanned(&meta.path, "this is said twice"));
    }
    Ok(())
}

fn value<T: Parse>(meta: &ParseNestedMeta<'_>) -> Result<T> {
    meta.value()?.parse()
}

/// A path, plain or as text, as serde takes it.
fn path(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    let input = meta.value()?;
    if input.peek(LitStr) {
        return input.parse::<LitStr>()?.parse_with(Path::parse_mod_style);
    }
    input.call(Path::parse_mod_style)
}

fn prefix(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    let prefix: LitStr = value(meta)?;
    match prefix.value().chars().find(|at| !at.is_ascii_graphic()) {
        Some(at) => {
            let message = format!("the prefix holds {at:?}; a name takes visible ASCII characters");
            Err(Error::new(prefix.span(), message))
        }
        None => Ok(prefix),
    }
}

fn field(meta: &ParseNestedMeta<'_>) -> Result<Ident> {
    let input = meta.value()?;
    input.parse().map_err(|error: Error| {
        let message = "here goes the name of a field, without quotes: `id = account`";
        Error::new(error.span(), message)
    })
}

fn version(meta: &ParseNestedMeta<'_>) -> Result<u32> {
    let literal: LitInt = value(meta)?;
    match literal.base10_parse() {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(Error::new(literal.span(), "schema versions start at 1 and end at 4294967295")),
    }
}

fn flag(meta: &ParseNestedMeta<'_>) -> Result<Span> {
    if meta.input.peek(Token![=]) || meta.input.peek(syn::token::Paren) {
        return Err(meta.error("this takes no value: it is there or it is not"));
    }
    Ok(syn::spanned::Spanned::span(&meta.path))
}

/// Errors that are reported together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Keeps the error, gives the value.
    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
