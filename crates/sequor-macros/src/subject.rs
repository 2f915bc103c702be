//! What a derive is on: a struct, or an enum with its variants.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Generics, Ident, LitStr, Path, Result,
    Variant, parse_quote,
};

use crate::attributes::{Errors, Grammar, Options, Place};
use crate::evolution::Step;
use crate::names;
use crate::serde_attributes::refuse_on_variants;

/// A struct or enum, read and checked.
pub(crate) struct Subject {
    pub(crate) ident: Ident,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) options: Options,
    /// Each variant, or the struct itself.
    pub(crate) cases: Vec<Case>,
}

/// A variant of an enum, or a whole struct.
pub(crate) struct Case {
    pub(crate) ident: Ident,
    pub(crate) is_variant: bool,
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) creates: Option<Span>,
    pub(crate) upcast: Vec<Step>,
    pub(crate) was: Vec<LitStr>,
    pub(crate) fields: Vec<(Field, Options)>,
}

impl Subject {
    /// Reads the input of a derive, and reports all that is wrong with it at once.
    pub(crate) fn read(input: DeriveInput, grammar: &Grammar) -> Result<Self> {
        refuse_generics(&input.generics, grammar)?;
        let place = match input.data {
            Data::Enum(_) => Place::Enum,
            Data::Struct(_) | Data::Union(_) => Place::Struct,
        };
        let mut errors = Errors::default();
        let options = errors.keep(grammar.read(&input.attrs, place));
        let mut options = options.unwrap_or_default();
        if place == Place::Enum {
            errors.keep(refuse_on_variants(&input.attrs, grammar.word));
        }
        let cases = errors.keep(Case::read_all(&input.ident, input.data, grammar, &mut options));
        errors.finish()?;
        Ok(Self {
            ident: input.ident,
            attributes: input.attrs,
            options,
            cases: cases.unwrap_or_default(),
        })
    }

    /// Where sequor is.
    pub(crate) fn krate(&self) -> Path {
        let named = self.options.krate.clone();
        named.unwrap_or_else(|| parse_quote!(::sequor))
    }

    /// A case's path, to be followed by its fields in braces; tuples and units allow that too.
    ///
    /// It starts at the type: `Self::Output` would also be the command's associated type.
    pub(crate) fn path(&self, case: &Case) -> TokenStream {
        let (container, ident) = (&self.ident, &case.ident);
        if case.is_variant {
            return quote!(#container::#ident);
        }
        quote!(#container)
    }

    /// The arms of a match on `self`, one a case.
    pub(crate) fn arms(&self, of: impl Fn(&Case) -> TokenStream) -> TokenStream {
        let arms = self.cases.iter().map(|case| {
            let (pattern, value) = (self.path(case), of(case));
            quote!(#pattern { .. } => #value,)
        });
        quote!(#(#arms)*)
    }

    /// Writes `self` without its variant's name. Errors about serde point at the type.
    pub(crate) fn write(&self) -> TokenStream {
        let krate = self.krate();
        let at = here(self.ident.span());
        if self.is_enum() {
            return quote_spanned!(at=> #krate::Json::of_variant(self));
        }
        quote_spanned!(at=> #krate::Json::of(self))
    }

    /// The arms of a match on a name, which read `payload` as the case that has it.
    pub(crate) fn read_arms(&self) -> TokenStream {
        let krate = self.krate();
        let at = here(self.ident.span());
        let arms = self.cases.iter().map(|case| {
            let (name, variant) = (&case.name, case.ident.unraw().to_string());
            let payload = if case.has_names() {
                quote_spanned!(at=> #krate::canonical::object(payload))
            } else {
                quote_spanned!(at=> ::core::result::Result::Ok::<_, #krate::Invalid>(payload))
            };
            let read = if self.is_enum() {
                quote_spanned!(at=> #krate::canonical::read_variant::<Self>(#variant, payload))
            } else {
                quote_spanned!(at=> #krate::Json::from_stored(payload).read::<Self>())
            };
            quote_spanned!(at=> #name => #payload.and_then(|payload| #read),)
        });
        quote!(#(#arms)*)
    }

    fn is_enum(&self) -> bool {
        self.cases.iter().any(|case| case.is_variant)
    }
}

impl Case {
    fn read_all(
        ident: &Ident,
        data: Data,
        grammar: &Grammar,
        options: &mut Options,
    ) -> Result<Vec<Self>> {
        let word = grammar.word;
        match data {
            Data::Struct(data) => {
                Self::of_struct(ident, data.fields, grammar, options).map(|itself| vec![itself])
            }
            Data::Union(data) => {
                let message = format!("a union is no {word}: write an enum or a struct");
                Err(Error::new(data.union_token.span, message))
            }
            Data::Enum(data) if data.variants.is_empty() => {
                let message = format!("an enum without variants has no {word} to name");
                Err(Error::new(ident.span(), message))
            }
            Data::Enum(data) => {
                let mut errors = Errors::default();
                let prefix = options.prefix.as_ref();
                let read = |variant| errors.keep(Self::of_variant(variant, grammar, prefix));
                let cases: Vec<Self> = data.variants.into_iter().filter_map(read).collect();
                errors.keep(names::refuse_twins(&cases));
                errors.finish().map(|()| cases)
            }
        }
    }

    fn of_struct(
        ident: &Ident,
        fields: Fields,
        grammar: &Grammar,
        options: &mut Options,
    ) -> Result<Self> {
        Ok(Self {
            ident: ident.clone(),
            is_variant: false,
            name: names::resolve(grammar, ident, options.prefix.as_ref(), options)?,
            version: options.version.unwrap_or(1),
            creates: options.creates,
            upcast: std::mem::take(&mut options.upcast),
            was: std::mem::take(&mut options.was),
            fields: read_fields(fields, grammar)?,
        })
    }

    fn of_variant(variant: Variant, grammar: &Grammar, prefix: Option<&LitStr>) -> Result<Self> {
        let mut errors = Errors::default();
        errors.keep(refuse_on_variants(&variant.attrs, grammar.word));
        let options = errors.keep(grammar.read(&variant.attrs, Place::Variant));
        let options = options.unwrap_or_default();
        let name = errors.keep(names::resolve(grammar, &variant.ident, prefix, &options));
        let fields = errors.keep(read_fields(variant.fields, grammar));
        errors.finish()?;
        Ok(Self {
            ident: variant.ident,
            is_variant: true,
            name: name.unwrap_or_default(),
            version: options.version.unwrap_or(1),
            creates: options.creates,
            upcast: options.upcast,
            was: options.was,
            fields: fields.unwrap_or_default(),
        })
    }

    /// Whether its fields have names.
    fn has_names(&self) -> bool {
        self.fields.iter().any(|(field, _)| field.ident.is_some())
    }

    /// The field of that name.
    pub(crate) fn field(&self, name: &Ident) -> Option<&Field> {
        let mut fields = self.fields.iter().map(|(field, _)| field);
        fields.find(|field| field.ident.as_ref() == Some(name))
    }
}

fn read_fields(fields: Fields, grammar: &Grammar) -> Result<Vec<(Field, Options)>> {
    let mut errors = Errors::default();
    let read = fields
        .into_iter()
        .filter_map(|field| {
            let options = errors.keep(grammar.read(&field.attrs, Place::Field))?;
            Some((field, options))
        })
        .collect();
    errors.finish()?;
    Ok(read)
}

fn refuse_generics(generics: &Generics, grammar: &Grammar) -> Result<()> {
    if generics.params.is_empty() {
        return Ok(());
    }
    let word = grammar.word;
    let message = format!(
        "a type with parameters or lifetimes is no {word}: what is stored is read back as one \
         type that owns what it holds"
    );
    Err(Error::new_spanned(&generics.params, message))
}

/// A place to report errors at, where names still mean what they mean to the derive.
pub(crate) fn here(span: Span) -> Span {
    Span::call_site().located_at(span)
}
