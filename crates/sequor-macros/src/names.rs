//! The stable names of a type's variants.

use std::collections::HashMap;

use heck::ToSnakeCase;
use syn::ext::IdentExt;
use syn::{Error, Ident, LitStr, Result};

use crate::attributes::{Errors, Grammar, Options};
use crate::subject::Case;

/// As `sequor_core::Name::BYTES_MAX`; a test compares the two.
const BYTES_MAX: usize = 128;

/// The name of a variant or struct: the one it was given, or prefix and identifier.
pub(crate) fn resolve(
    grammar: &Grammar,
    ident: &Ident,
    prefix: Option<&LitStr>,
    options: &Options,
) -> Result<String> {
    if let Some(name) = &options.name {
        check(&name.value()).map_err(|rule| Error::new(name.span(), rule))?;
        return Ok(name.value());
    }
    let prefix = prefix.map(LitStr::value).unwrap_or_default();
    let name = prefix + &ident.unraw().to_string().to_snake_case();
    check(&name).map_err(|rule| {
        let hint = format!("give it one: `#[{}(name = \"…\")]`", grammar.word);
        Error::new(ident.span(), format!("{rule}; {hint}"))
    })?;
    Ok(name)
}

/// As `sequor_core::names::is_name`.
pub(crate) fn check(name: &str) -> std::result::Result<(), String> {
    let rule = "a name takes 1 to 128 visible ASCII characters";
    let problem = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > BYTES_MAX {
        format!("has {} bytes", name.len())
    } else if let Some(other) = name.chars().find(|other| !other.is_ascii_graphic()) {
        format!("holds {other:?}")
    } else {
        return Ok(());
    };
    let name: String = name.chars().take(BYTES_MAX).collect();
    Err(format!("the name {name:?} {problem}; {rule}"))
}

/// Refuses a name that two variants share, at the second of them.
pub(crate) fn refuse_twins(cases: &[Case]) -> Result<()> {
    let mut first = HashMap::new();
    let mut errors = Errors::default();
    for Case { ident, name, .. } in cases {
        if let Some(other) = first.insert(name, ident) {
            let message = format!("`{ident}` and `{other}` share the name `{name}`");
            errors.push(Error::new(ident.span(), message));
        }
    }
    errors.finish()
}
