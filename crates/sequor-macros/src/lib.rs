//! The derives of sequor: names and versions for commands and events.
//!
//! *For:* `#[derive(Event)]` and `#[derive(Command)]`, which give every variant the name that is
//! written into the store.
//! *Never:* behaviour. What a derive writes could be written by hand in a minute, and nothing in
//! it depends on another derive.
//! *Start here:* `event.rs`, the shorter of the two.
//!
//! Both derives write paths that start at `::sequor`, the facade. A crate below the facade names
//! another root with `#[event(crate = sequor_core)]` or `#[command(crate = sequor_core)]`.

mod attributes;
mod names;
mod serde_attributes;
mod subject;

mod command;
mod event;
mod evolution;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Gives each variant of an enum, or a struct, its stable name and schema version as an event.
///
/// The type derives serde's `Serialize` and `Deserialize` too; they write and read what a variant
/// holds. The variant's own name in JSON is sequor's business: serde attributes that change how an
/// enum's variants are told apart (`tag`, `content`, `untagged`, `rename`, `rename_all`, …) are
/// refused. Fields are free: `rename` on a field and `rename_all_fields` on the enum work.
///
/// | attribute | goes on | meaning | default |
/// |---|---|---|---|
/// | `#[event(name = "account.opened")]` | variant, struct | the whole name | prefix and identifier in `snake_case` |
/// | `#[event(version = 2)]` | variant, struct | version of the payload's shape, from 1 | 1 |
/// | `#[event(prefix = "account.")]` | enum, struct | is put before default names | nothing |
/// | `#[event(upcast(1 = f, 2 = g))]` | variant, struct | what brings older payloads up, version by version | older ones are refused |
/// | `#[event(was = "account.created")]` | variant, struct | an earlier name; may be said again | none |
/// | `#[event(split("account.moved", 1 = f))]` | enum, struct | an older event that is read as none, one or several of today's | none |
/// | `#[event(skip("account.pinged", "crm.*"))]` | enum, struct | events that are passed over, by name or beginning of names | unknown ones are refused |
/// | `#[event(crate = sequor_core)]` | enum, struct | where sequor is | `::sequor` |
///
/// `f` is a function or a closure from what serde can read to what it can write: two versions of a
/// struct, or `serde_json::Value` twice. That of a split gives today's events, as an array, an
/// `Option` or a `Vec`. A chain without its first or a middle step does not compile.
///
/// A name is 1 to 128 bytes of visible ASCII, and no two variants share one. It is stored with
/// every event: renaming the variant in Rust is free only once `name` holds the old name.
///
/// ```
/// use sequor_core::Event;
/// use sequor_macros::Event;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Event, Serialize, Deserialize)]
/// #[event(crate = sequor_core, prefix = "account.")]
/// enum AccountEvent {
///     Opened { owner: String },
///     #[event(version = 2)]
///     Deposited { cents: u64 },
///     #[event(name = "account.ended")]
///     Closed,
/// }
///
/// let deposited = AccountEvent::Deposited { cents: 5 };
/// assert_eq!(deposited.name().name, "account.deposited");
/// assert_eq!(deposited.name().schema_version, 2);
/// assert_eq!(AccountEvent::Closed.name().name, "account.ended");
///
/// let payload = deposited.encode()?;
/// assert_eq!(payload.as_str(), r#"{"cents":5}"#);
/// assert_eq!(AccountEvent::decode(deposited.name(), payload.as_str())?, deposited);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    event::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Gives each variant of an enum, or a struct, its stable name as a command, and says what it
/// answers.
///
/// The type derives serde's `Serialize` and `Deserialize` too, under the same terms as an event.
///
/// | attribute | goes on | meaning | default |
/// |---|---|---|---|
/// | `#[command(name = "account.deposit")]` | variant, struct | the whole name | prefix and identifier in `snake_case` |
/// | `#[command(prefix = "account.")]` | enum, struct | is put before default names | nothing |
/// | `#[command(output = Balance)]` | enum, struct | what it answers | `()` |
/// | `#[command(rejection = Refused)]` | enum, struct | how the domain says no | [`Infallible`](std::convert::Infallible) |
/// | `#[command(id = account)]` | enum, struct | the field with the aggregate's id; implements `Target` | not about one aggregate |
/// | `#[command(creates)]` | variant, struct | it usually begins its aggregate: decided without a load where nothing is known of it | it is loaded first |
/// | `#[command(validate)]` | enum, struct | `validate` calls the type's own `Validate` | no checks |
/// | `#[command(volatile)]` | named field | is left out of the fingerprint | every field counts |
/// | `#[command(crate = sequor_core)]` | enum, struct | where sequor is | `::sequor` |
///
/// Two requests under one idempotency key are the same request when their fingerprints are equal.
/// A field that changes with each attempt (a time of sending, a trace) is therefore `volatile`.
/// Where serde renames all fields at once, a volatile one says its name in JSON itself, with
/// `#[serde(rename = "…")]`.
///
/// ```
/// use sequor_core::{Command, Invalid, Target, Validate};
/// use sequor_macros::Command;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Command, Serialize, Deserialize)]
/// #[command(crate = sequor_core, prefix = "account.", output = u64, id = account, validate)]
/// struct Deposit {
///     account: String,
///     cents: u64,
///     #[command(volatile)]
///     sent_at: u64,
/// }
///
/// impl Validate for Deposit {
///     fn validate(&self) -> Result<(), Invalid> {
///         if self.cents == 0 {
///             return Err(Invalid::command("a deposit of nothing"));
///         }
///         Ok(())
///     }
/// }
///
/// let deposit = |cents, sent_at| Deposit { account: "a-1".into(), cents, sent_at };
/// assert_eq!(deposit(5, 1).name(), "account.deposit");
/// assert_eq!(deposit(5, 1).aggregate_id()?.as_str(), "a-1");
/// assert!(Command::validate(&deposit(0, 1)).is_err());
///
/// let fingerprint = |command: Deposit| command.fingerprint(&command.encode()?);
/// assert_eq!(fingerprint(deposit(5, 1))?, fingerprint(deposit(5, 2))?);
/// assert_ne!(fingerprint(deposit(5, 1))?, fingerprint(deposit(6, 1))?);
/// # Ok::<(), Invalid>(())
/// ```
#[proc_macro_derive(Command, attributes(command))]
pub fn derive_command(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    command::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
