//! What `#[derive(Command)]` writes.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Error, Ident, Result, parse_quote};

use crate::attributes::{self, Errors};
use crate::serde_attributes;
use crate::subject::{Case, Subject, here};

pub(crate) fn expand(input: DeriveInput) -> Result<TokenStream> {
    let subject = Subject::read(input, &attributes::COMMAND)?;
    let mut errors = Errors::default();
    let fingerprint = errors.keep(fingerprint(&subject));
    let target = errors.keep(target(&subject));
    errors.finish()?;

    let krate = subject.krate();
    let ident = &subject.ident;
    let types = types(&subject);
    let names = subject.cases.iter().map(|case| &case.name);
    let name_arms = subject.arms(|Case { name, .. }| quote!(#name));
    let encode = subject.write();
    let decode = decode(&subject);
    let validate = validate(&subject);

    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #krate::Command for #ident {
            #types
            const NAMES: &'static [&'static str] = &[#(#names),*];

            fn name(&self) -> &'static str {
                match self { #name_arms }
            }

            fn encode(&self) -> ::core::result::Result<#krate::Json, #krate::Invalid> {
                #encode
            }

            #decode
            #fingerprint
            #validate
        }

        #target
    })
}

fn types(subject: &Subject) -> TokenStream {
    let output = subject.options.output.clone();
    let output = output.unwrap_or_else(|| parse_quote!(()));
    let rejection = subject.options.rejection.clone();
    let rejection = rejection.unwrap_or_else(|| parse_quote!(::core::convert::Infallible));
    quote! {
        type Output = #output;
        type Rejection = #rejection;
    }
}

fn decode(subject: &Subject) -> TokenStream {
    let krate = subject.krate();
    let arms = subject.read_arms();
    quote! {
        fn decode(
            name: &str,
            payload: &str,
        ) -> ::core::result::Result<Self, #krate::Invalid> {
            let read = match name {
                #arms
                other => return ::core::result::Result::Err(#krate::Invalid::command(
                    ::core::format_args!("no command is called `{}` here", other),
                )),
            };
            read.map_err(|invalid| {
                let reason = if let #krate::Invalid::Json { reason } = invalid {
                    reason
                } else {
                    ::std::string::ToString::to_string(&invalid)
                };
                #krate::Invalid::command(
                    ::core::format_args!("command `{}` cannot be read: {}", name, reason),
                )
            })
        }
    }
}

/// The fingerprint without volatile fields; nothing where the trait's own will do.
fn fingerprint(subject: &Subject) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let volatile: Vec<_> = subject
        .cases
        .iter()
        .map(|case| errors.keep(volatile_members(subject, case)).unwrap_or_default())
        .collect();
    errors.finish()?;
    if volatile.iter().all(Vec::is_empty) {
        return Ok(TokenStream::new());
    }

    let krate = subject.krate();
    let arms = subject.cases.iter().zip(&volatile).map(|(case, members)| {
        let path = subject.path(case);
        if members.is_empty() {
            return quote!(#path { .. } => #krate::Fingerprint::of(name, payload),);
        }
        let without = quote!(payload.without(&[#(#members),*])?);
        quote!(#path { .. } => #krate::Fingerprint::of(name, &#without),)
    });
    Ok(quote! {
        fn fingerprint(
            &self,
            payload: &#krate::Json,
        ) -> ::core::result::Result<#krate::Fingerprint, #krate::Invalid> {
            let name = <Self as #krate::Command>::name(self);
            ::core::result::Result::Ok(match self { #(#arms)* })
        }
    })
}

/// What a case's volatile fields are called in JSON.
fn volatile_members(subject: &Subject, case: &Case) -> Result<Vec<String>> {
    let mut errors = Errors::default();
    let renamed = serde_attributes::renames_fields(&subject.attributes);
    let members = case
        .fields
        .iter()
        .filter_map(|(field, options)| Some((field, options.volatile?)))
        .filter_map(|(field, at)| {
            let member = serde_attributes::member(field, renamed);
            errors.keep(member.map_err(|why| Error::new(at, format!("`volatile` {why}"))))
        })
        .collect();
    errors.finish().map(|()| members)
}

fn validate(subject: &Subject) -> Option<TokenStream> {
    let krate = subject.krate();
    let at = here(subject.options.validate?);
    Some(quote_spanned! {at=>
        fn validate(&self) -> ::core::result::Result<(), #krate::Invalid> {
            <Self as #krate::Validate>::validate(self)
        }
    })
}

/// The command's aggregate, where `id` names the field that holds it.
fn target(subject: &Subject) -> Result<Option<TokenStream>> {
    let mut creators = subject.cases.iter().filter_map(|case| case.creates).peekable();
    let Some(id) = &subject.options.id else {
        let message = "`creates` is about the command's aggregate: name the field with its id, as in \
                       `#[command(id = account)]`";
        return creators.next().map_or(Ok(None), |at| Err(Error::new(at, message)));
    };
    let creates = creators.peek().is_some().then(|| creates(subject));
    let krate = subject.krate();
    let mut errors = Errors::default();
    let arms: Vec<_> = subject
        .cases
        .iter()
        .filter_map(|case| errors.keep(target_arm(subject, case, id)))
        .collect();
    errors.finish()?;

    let ident = &subject.ident;
    Ok(Some(quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #krate::Target for #ident {
            fn aggregate_id(
                &self,
            ) -> ::core::result::Result<#krate::AggregateId, #krate::Invalid> {
                match self { #(#arms)* }
            }

            #creates
        }
    }))
}

/// Which cases usually begin their aggregate.
fn creates(subject: &Subject) -> TokenStream {
    let arms = subject.arms(|case| {
        let creates = case.creates.is_some();
        quote!(#creates)
    });
    quote! {
        fn creates(&self) -> bool {
            match self { #arms }
        }
    }
}

fn target_arm(subject: &Subject, case: &Case, id: &Ident) -> Result<TokenStream> {
    let (krate, path) = (subject.krate(), subject.path(case));
    let Some(field) = case.field(id) else {
        let message = format!(
            "`{}` has no field `{id}`, so it does not say which aggregate it is about",
            case.ident
        );
        return Err(Error::new(case.ident.span(), message));
    };
    let at = here(syn::spanned::Spanned::span(&field.ty));
    Ok(quote_spanned!(at=> #path { #id: id, .. } => #krate::AggregateId::new(id),))
}
