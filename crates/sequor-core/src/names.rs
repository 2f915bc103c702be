//! Stable names of commands, aggregates, events and scopes.

use std::borrow::Cow;
use std::fmt;

use crate::error::Invalid;

/// A stable name: 1 to 128 bytes of visible ASCII, written into the store, never a Rust path.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Cow<'static, str>);

impl Name {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// Takes a text as a name.
    ///
    /// # Errors
    /// [`Invalid::Name`] when it is empty, longer than 128 bytes, or not visible ASCII.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Result<Self, Invalid> {
        let text = text.into();
        if is_name(&text) {
            return Ok(Self(text));
        }
        Err(Invalid::Name { name: text.escape_debug().take(64).collect() })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a text may be a [`Name`].
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=Name::BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// 1 to 255 bytes without control characters: what an aggregate id, an actor and a unique value
/// have in common. PostgreSQL text cannot hold NUL, and SQLite's `length()` stops at it.
pub(crate) fn is_short_text(text: &str) -> bool {
    (1..=255).contains(&text.len()) && !text.chars().any(char::is_control)
}
