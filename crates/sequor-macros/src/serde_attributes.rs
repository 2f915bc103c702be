//! What serde was told, as far as it touches names.

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Field, LitStr, Meta, Result, Token};

use crate::attributes::Errors;

/// Keys on a container that change what its fields are called in JSON.
const FIELD_NAME_KEYS: &[&str] = &["rename_all", "rename_all_fields", "transparent", "into"];

/// Refuses attributes of an enum or variant that change how serde tells variants apart.
pub(crate) fn refuse_on_variants(attributes: &[Attribute], word: &str) -> Result<()> {
    let mut errors = Errors::default();
    for meta in metas(attributes) {
        let key = meta.path().get_ident().map(ToString::to_string);
        let key = key.unwrap_or_default();
        if let Some(why) = why_not_on_variants(&key, word) {
            let message = format!("serde's `{key}` does not go here: {why}");
            errors.push(Error::new_spanned(meta.path(), message));
        }
    }
    errors.finish()
}

fn why_not_on_variants(key: &str, word: &str) -> Option<String> {
    let itself = format!(
        "sequor names each {word} itself and stores the name beside what the variant holds"
    );
    match key {
        "tag" | "content" | "untagged" => Some(itself),
        "rename" => Some(format!("{itself}; to choose the name, write `#[{word}(name = \"…\")]`")),
        "rename_all" => {
            Some(format!("{itself}; to rename all fields, write `rename_all_fields` on the enum"))
        }
        "from" | "try_from" | "into" => Some(format!(
            "sequor stores what each variant holds, so the {word} writes and reads itself"
        )),
        "skip" | "skip_serializing" | "skip_deserializing" => {
            Some(format!("each {word} must be written and read back"))
        }
        _ => None,
    }
}

/// Whether a container tells serde to call its fields otherwise.
pub(crate) fn renames_fields(attributes: &[Attribute]) -> bool {
    let changes = |meta: &Meta| FIELD_NAME_KEYS.iter().any(|key| meta.path().is_ident(key));
    metas(attributes).iter().any(changes)
}

/// What a field is called in JSON, or why that is not known.
pub(crate) fn member(field: &Field, renamed: bool) -> std::result::Result<String, &'static str> {
    let Some(ident) = &field.ident else {
        return Err("goes on a field with a name: a tuple's field has none to leave out");
    };
    let metas = metas(&field.attrs);
    if metas.iter().any(|meta| meta.path().is_ident("flatten")) {
        return Err("does not go with `flatten`: the field's members stand in its place");
    }
    match rename(&metas) {
        Some(name) => Ok(name),
        None if renamed => Err("needs the field's name in JSON: add `#[serde(rename = \"…\")]`"),
        None => Ok(ident.unraw().to_string()),
    }
}

/// What `#[serde(rename = "…")]` calls a field when it is written.
fn rename(metas: &[Meta]) -> Option<String> {
    metas.iter().find_map(|meta| match meta {
        Meta::NameValue(pair) if pair.path.is_ident("rename") => {
            let text = quote::ToTokens::to_token_stream(&pair.value);
            syn::parse2::<LitStr>(text).ok().map(|text| text.value())
        }
        Meta::List(list) if list.path.is_ident("rename") => {
            let mut name = None;
            let read = |meta: ParseNestedMeta<'_>| {
                let text: LitStr = meta.value()?.parse()?;
                if meta.path.is_ident("serialize") {
                    name = Some(text.value());
                }
                Ok(())
            };
            list.parse_nested_meta(read).ok().and(name)
        }
        Meta::Path(_) | Meta::NameValue(_) | Meta::List(_) => None,
    })
}

/// The parts of all serde attributes; what cannot be read is left to serde to complain about.
fn metas(attributes: &[Attribute]) -> Vec<Meta> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("serde"))
        .filter_map(|attribute| {
            let parts = Punctuated::<Meta, Token![,]>::parse_terminated;
            attribute.parse_args_with(parts).ok()
        })
        .flatten()
        .collect()
}
