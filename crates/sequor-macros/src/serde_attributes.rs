//! What serde was told, as far as it touches names.

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Field, LitStr, Meta, Result, Token};

use crate::attributes::Errors;

/// Keys on an enum or a variant that change how serde tells the variants apart.
const VARIANT_KEYS: &[&str] = &[
    "tag",
    "content",
    "untagged",
    "rename",
    "rename_all",
    "from",
    "try_from",
    "into",
    "skip",
    "skip_serializing",
    "skip_deserializing",
];

/// Keys on a container that change what its fields are called in JSON.
const FIELD_NAME_KEYS: &[&str] = &["rename_all", "rename_all_fields", "transparent"];

/// Refuses attributes of an enum or variant that change how serde tells variants apart.
pub(crate) fn refuse_on_variants(attributes: &[Attribute], word: &str) -> Result<()> {
    let mut errors = Errors::default();
    for meta in metas(attributes) {
        for key in VARIANT_KEYS.iter().filter(|key| meta.path().is_ident(key)) {
            let message = format!(
                "serde's `{key}` does not go here: sequor names each {word} itself and stores the \
                 name beside what the variant holds; to choose it, write `#[{word}(name = \"…\")]`"
            );
            errors.push(Error::new_spanned(meta.path(), message));
        }
    }
    errors.finish()
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
