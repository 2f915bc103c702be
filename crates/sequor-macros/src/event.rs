//! What `#[derive(Event)]` writes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result};

use crate::attributes;
use crate::evolution;
use crate::subject::{Case, Subject};

pub(crate) fn expand(input: DeriveInput) -> Result<TokenStream> {
    let subject = Subject::read(input, &attributes::EVENT)?;
    evolution::check(&subject)?;
    let krate = subject.krate();
    let ident = &subject.ident;

    let name_of = |Case { name, version, .. }: &Case| quote!(#krate::EventName { name: #name, schema_version: #version });
    let names = subject.cases.iter().map(name_of);
    let name_arms = subject.arms(name_of);
    let encode = subject.write();
    let decode = decode(&subject);
    let evolution = evolution::expand(&subject);

    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #krate::Event for #ident {
            const NAMES: &'static [#krate::EventName] = &[#(#names),*];

            #evolution

            fn name(&self) -> #krate::EventName {
                match self { #name_arms }
            }

            fn encode(&self) -> ::core::result::Result<#krate::Json, #krate::Invalid> {
                #encode
            }

            #decode
        }
    })
}

fn decode(subject: &Subject) -> TokenStream {
    let krate = subject.krate();
    let arms = subject.read_arms();
    quote! {
        fn decode(
            name: #krate::EventName,
            payload: &str,
        ) -> ::core::result::Result<Self, #krate::DecodeError> {
            let read = match name.name {
                #arms
                other => return ::core::result::Result::Err(match #krate::Name::new(other) {
                    ::core::result::Result::Ok(name) => #krate::DecodeError::UnknownName { name },
                    ::core::result::Result::Err(invalid) => #krate::DecodeError::Malformed {
                        name: other,
                        reason: ::std::string::ToString::to_string(&invalid),
                    },
                }),
            };
            read.map_err(|invalid| #krate::DecodeError::Malformed {
                name: name.name,
                reason: if let #krate::Invalid::Json { reason } = invalid {
                    reason
                } else {
                    ::std::string::ToString::to_string(&invalid)
                },
            })
        }
    }
}
