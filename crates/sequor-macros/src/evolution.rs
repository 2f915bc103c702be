//! Older events: what `upcast`, `was`, `split` and `skip` say, checked and written.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Error, Expr, LitInt, LitStr, Result, Token, parenthesized};

use crate::attributes::Errors;
use crate::names;
use crate::subject::{Case, Subject, here};

/// `1 = in_euro`: a function for what was written with a schema version.
pub(crate) struct Step {
    version: u32,
    span: Span,
    function: Expr,
}

/// `split("account.moved", 1 = in_two)`.
pub(crate) struct Split {
    name: LitStr,
    steps: Vec<Step>,
}

impl Parse for Step {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let literal: LitInt = input.parse().map_err(|error| {
            Error::new(error.span(), "here goes a schema version and its function: `1 = in_euro`")
        })?;
        let _: Token![=] = input.parse()?;
        let version = literal.base10_parse()?;
        Ok(Self { version, span: literal.span(), function: input.parse()? })
    }
}

impl Parse for Split {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let _: Token![,] = input.parse()?;
        let steps = Punctuated::<Step, Token![,]>::parse_terminated(input)?;
        Ok(Self { name: checked(name)?, steps: steps.into_iter().collect() })
    }
}

/// `upcast(1 = in_euro, 2 = with_owner)`.
pub(crate) fn upcast(meta: &ParseNestedMeta<'_>) -> Result<Vec<Step>> {
    let steps = in_parentheses(meta, Punctuated::<Step, Token![,]>::parse_terminated)?;
    Ok(steps.into_iter().collect())
}

/// `split("account.moved", 1 = in_two)`.
pub(crate) fn split(meta: &ParseNestedMeta<'_>) -> Result<Split> {
    in_parentheses(meta, Split::parse)
}

/// `skip("account.pinged", "crm.*")`.
pub(crate) fn skip(meta: &ParseNestedMeta<'_>) -> Result<Vec<LitStr>> {
    let names = in_parentheses(meta, Punctuated::<LitStr, Token![,]>::parse_terminated)?;
    names.into_iter().map(checked).collect()
}

/// `was = "account.created"`.
pub(crate) fn was(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    checked(meta.value()?.parse()?)
}

fn in_parentheses<T>(
    meta: &ParseNestedMeta<'_>,
    read: impl FnOnce(ParseStream<'_>) -> Result<T>,
) -> Result<T> {
    let content;
    parenthesized!(content in meta.input);
    read(&content)
}

fn checked(name: LitStr) -> Result<LitStr> {
    names::check(&name.value()).map_err(|rule| Error::new(name.span(), rule))?;
    Ok(name)
}

/// Refuses chains with holes, and names that are said to be gone while a case carries them.
pub(crate) fn check(subject: &Subject) -> Result<()> {
    let mut errors = Errors::default();
    for case in &subject.cases {
        errors.keep(check_chain(case, &subject.options.split));
    }
    let gone = subject.cases.iter().flat_map(|case| &case.was).chain(&subject.options.skip);
    let mut seen: Vec<String> = Vec::new();
    for name in gone {
        let text = name.value();
        if let Some(case) = subject.cases.iter().find(|case| case.name == text) {
            let message = format!("`{text}` is not gone: `{}` carries it", case.ident);
            errors.push(Error::new(name.span(), message));
        } else if seen.contains(&text) {
            errors.push(Error::new(name.span(), format!("`{text}` is gone already")));
        }
        seen.push(text);
    }
    errors.finish()
}

/// Every version below today's has one step, or none has.
fn check_chain(case: &Case, splits: &[Split]) -> Result<()> {
    let of_case = splits.iter().filter(|split| split.name.value() == case.name);
    let steps: Vec<&Step> =
        case.upcast.iter().chain(of_case.flat_map(|split| &split.steps)).collect();
    let (ident, newest) = (&case.ident, case.version);
    let mut errors = Errors::default();
    for (at, step) in steps.iter().enumerate() {
        let Step { version, span, .. } = step;
        if !(1..newest).contains(version) {
            let message =
                format!("`{ident}` is at version {newest}: steps start at 1, and below {newest}");
            errors.push(Error::new(*span, message));
        } else if steps.iter().take(at).any(|other| other.version == *version) {
            let message = format!("two steps of `{ident}` start at version {version}");
            errors.push(Error::new(*span, message));
        }
    }
    let is_start = |version| steps.iter().any(|step| step.version == version);
    if let Some(first) = steps.first()
        && let Some(gap) = (1..newest).find(|version| !is_start(*version))
    {
        let message = format!("no step leads `{ident}` from version {gap} to {}", gap + 1);
        errors.push(Error::new(first.span, message));
    }
    errors.finish()
}

/// The constant, where there is something to say.
pub(crate) fn expand(subject: &Subject) -> TokenStream {
    let krate = &subject.krate();
    let (split, skip) = (&subject.options.split, &subject.options.skip);
    let is_old = |case: &Case| !case.upcast.is_empty() || !case.was.is_empty();
    if split.is_empty() && skip.is_empty() && !subject.cases.iter().any(is_old) {
        return TokenStream::new();
    }
    let renames = subject.cases.iter().flat_map(|Case { name, was, .. }| {
        was.iter().map(move |was| quote!(#krate::event::Rename { was: #was, is: #name }))
    });
    let steps = subject.cases.iter().flat_map(|Case { name, upcast, .. }| {
        upcast.iter().map(move |Step { version, function, .. }| {
            let raise = quote_spanned!(here(function.span())=>
                |payload| #krate::event::raise(payload, #function));
            quote!(#krate::event::Step { name: #name, from: #version, raise: #raise })
        })
    });
    let splits = split.iter().flat_map(|Split { name, steps }| {
        steps.iter().map(move |Step { version, function, .. }| {
            let read = quote_spanned!(here(function.span())=>
                |payload| #krate::event::split(payload, #function));
            quote!(#krate::event::Split::<Self> { name: #name, version: #version, read: #read })
        })
    });
    quote! {
        const EVOLUTION: #krate::event::Evolution<Self> = #krate::event::Evolution::NONE
            .renames(&[#(#renames),*])
            .steps(&[#(#steps),*])
            .splits(&[#(#splits),*])
            .skips(&[#(#skip),*]);
    }
}
