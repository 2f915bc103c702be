//! What a caller asks for.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::canonical::Json;
use crate::error::Invalid;
use crate::fingerprint::Fingerprint;
use crate::stream::AggregateId;

/// A named, serialisable request with a typed output. Usually derived:
/// `#[derive(Command, Serialize, Deserialize)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a command",
    note = "derive it: `#[derive(Command, Serialize, Deserialize)]`"
)]
pub trait Command: Sized + Send + Sync + 'static {
    /// What it answers; stored with the command, so that a retry can have it again.
    type Output: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// How the domain says no.
    type Rejection: std::error::Error + Send + Sync + 'static;

    /// Every name this type can carry; each is handled by one handler of a service.
    const NAMES: &'static [&'static str];

    /// The name of this one: stable, written into the store, part of the fingerprint.
    fn name(&self) -> &'static str;

    /// The payload, as canonical JSON.
    ///
    /// # Errors
    /// [`Invalid`] when a value has no JSON that could be read back (NaN, NUL, non-text keys).
    fn encode(&self) -> Result<Json, Invalid>;

    /// Reads a command from its name and payload.
    ///
    /// # Errors
    /// [`Invalid::Command`] when no variant has the name, or the payload has another shape.
    fn decode(name: &str, payload: &str) -> Result<Self, Invalid>;

    /// Tells whether two requests under one key are the same, from the payload that
    /// [`Command::encode`] gave. Volatile fields are left out.
    ///
    /// # Errors
    /// As [`Command::encode`].
    fn fingerprint(&self, payload: &Json) -> Result<Fingerprint, Invalid> {
        Ok(Fingerprint::of(self.name(), payload))
    }

    /// Checks what can be checked without state. It runs before the handler, as the first filter.
    ///
    /// # Errors
    /// [`Invalid`]: the caller must change the request.
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// A command that is about one aggregate. `#[command(id = field)]` derives it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which aggregate it is about",
    note = "name the field that holds the aggregate's id: `#[command(id = account)]`"
)]
pub trait Target: Command {
    /// The id of the aggregate.
    ///
    /// # Errors
    /// [`Invalid::AggregateId`] when the field does not print as an id.
    fn aggregate_id(&self) -> Result<AggregateId, Invalid>;

    /// Whether it usually begins its aggregate, as "open the account" does. Then, where this process
    /// knows nothing of the aggregate, it is decided on the empty state without being loaded: one
    /// round trip less. Default false; `#[command(creates)]` says so.
    ///
    /// It changes what a command costs, never what becomes of it: where the aggregate exists, the
    /// commit finds out, and a refusal is said on what is stored only; the aggregate is loaded then
    /// and the command decided again, which takes two round trips more, and counts as one of the
    /// bus's retries.
    fn creates(&self) -> bool {
        false
    }
}

/// Checks of a command's own, called through `#[command(validate)]`.
pub trait Validate {
    /// Checks what can be checked without state.
    ///
    /// # Errors
    /// [`Invalid`]; [`Invalid::command`] makes one from anything that prints, such as a report of
    /// the `garde` crate.
    fn validate(&self) -> Result<(), Invalid>;
}
