//! What is wrong with a request.

use crate::key::IdempotencyKey;
use crate::names::Name;
use crate::stream::StreamId;

/// What is wrong with a request: found before anything is written, and the same in every store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The tenant is the nil UUID.
    #[error("the tenant is the nil UUID; there is no default tenant")]
    TenantNil,
    /// The tenant is not a UUID.
    #[error("the tenant is not a UUID")]
    TenantMalformed,
    /// There is no tenant.
    #[error("the command has no tenant; say for whom: `Meta::new(tenant)`")]
    TenantMissing,
    /// The idempotency key breaks its rules.
    #[error(
        "the idempotency key {reason}; it takes 1 to {} visible ASCII characters",
        IdempotencyKey::BYTES_MAX
    )]
    Key {
        /// Which rule.
        reason: &'static str,
    },
    /// The service does not keep keys.
    #[error("this service is built without idempotency; send no key, or build it with")]
    KeyWithoutIdempotency,
    /// A middleware behind idempotency has changed the tenant or the key.
    #[error("a middleware changed the tenant or the key behind idempotency; place it before")]
    MetaChanged,
    /// A handler executes a command on the service that it works for.
    #[error(
        "a handler executes a command on its own service, whose transaction it holds; \
         issue it: `repo.issue(command, key)`"
    )]
    InsideHandler,
    /// A name breaks its rules.
    #[error("`{name}` is no name: it takes 1 to {} visible ASCII characters", Name::BYTES_MAX)]
    Name {
        /// Its beginning, escaped.
        name: String,
    },
    /// An aggregate id breaks its rules.
    #[error("the aggregate id is empty, over 255 bytes, or holds a control character")]
    AggregateId,
    /// An actor breaks its rules.
    #[error("the actor is empty, over 255 bytes, or holds a control character")]
    Actor,
    /// A unique value breaks its rules.
    #[error("a value in `{scope}` is empty, over 255 bytes, or holds a control character")]
    UniqueValue {
        /// What kind of value.
        scope: Name,
    },
    /// A time lies outside the calendar.
    #[error("a time lies outside the calendar")]
    Time,
    /// A fingerprint has another length.
    #[error("a fingerprint takes 33 bytes")]
    Fingerprint,
    /// A value has no JSON that every store and reader would keep as it is.
    #[error("no portable JSON: {reason}")]
    Json {
        /// What and where.
        reason: String,
    },
    /// What would be written could not be read again.
    #[error("the {what} does not read back as what was written: {reason}")]
    NotReadable {
        /// `event` or `output`.
        what: &'static str,
        /// What the reader said.
        reason: String,
    },
    /// The command's own checks, or its shape.
    #[error("{reason}")]
    Command {
        /// As the check put it.
        reason: String,
    },
    /// Something is too long.
    #[error("the {what} takes {bytes} bytes, the limit is {max}")]
    TooLarge {
        /// `command`, `event`, `output` or `commit`.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// Something is too many.
    #[error("{count} {what} in one command, the limit is {max}")]
    TooMany {
        /// `events`, `streams` or `commands`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// A commit names an aggregate twice.
    #[error("{stream} is in one commit twice")]
    StreamTwice {
        /// Which.
        stream: StreamId,
    },
    /// A commit has an event of no aggregate.
    #[error("an event belongs to no aggregate of its commit")]
    EventWithoutStream,
    /// No handler takes the command.
    #[error("no handler takes command `{name}`; register one with the service's builder")]
    NoHandler {
        /// The command.
        name: String,
    },
    /// `if_version` on a command that is not about one aggregate.
    #[error("`if_version` needs a decider; a handler compares versions itself")]
    IfVersionWithoutDecider,
    /// One transaction speaks for several tenants.
    #[error("one transaction speaks for several tenants")]
    TenantsDiffer,
}

impl Invalid {
    /// A refusal by a command's own checks, from anything that prints.
    pub fn command(reason: impl std::fmt::Display) -> Self {
        Self::Command { reason: reason.to_string() }
    }

    /// Something that would be written and not be read again.
    pub fn not_readable(what: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::NotReadable { what, reason: reason.to_string() }
    }

    /// A value without portable JSON. Texts that the reader quotes are left out: they are the
    /// user's, and errors go to logs.
    pub(crate) fn json(reason: impl std::fmt::Display) -> Self {
        Self::Json { reason: without_quoted(&reason.to_string()) }
    }
}

/// A message of `serde_json` without the texts between its double quotes.
fn without_quoted(message: &str) -> String {
    let (first, last) = (message.find('"'), message.rfind('"'));
    match (first, last) {
        (Some(first), Some(last)) if first < last => {
            let (before, after) = (message.get(..first), message.get(last + 1..));
            format!("{}\"…\"{}", before.unwrap_or_default(), after.unwrap_or_default())
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::canonical::Json;

    #[test]
    fn what_the_reader_quotes_is_left_out() {
        let wrong = Json::from_stored(r#"{"cents":"my \"secret\" text"}"#)
            .read::<std::collections::BTreeMap<String, u64>>();
        let message = wrong.unwrap_err().to_string();
        assert!(message.contains("u64"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
}
