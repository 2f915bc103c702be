//! The caller's name for one intent.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;

/// The caller's name for one intent: 1 to 255 bytes of visible ASCII, compared byte for byte.
///
/// It is never trimmed and never folded, so `k` and `K` are two keys. "No key" is `None` of an
/// `Option`; an empty key is an error. The bound of 255 keeps every key inside a B-tree entry of
/// every store (PostgreSQL refuses entries above about 2,700 bytes, depending on how well they
/// compress), and the alphabet is the one that survives an HTTP header.
///
/// ```
/// use sequor_core::IdempotencyKey;
///
/// let key: IdempotencyKey = "charge-42".parse()?;
/// assert_eq!(key.as_str(), "charge-42");
/// assert!("".parse::<IdempotencyKey>().is_err());
/// assert!("a b".parse::<IdempotencyKey>().is_err());
/// # Ok::<(), sequor_core::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// The longest key, in bytes.
    pub const BYTES_MAX: usize = 255;

    /// Takes a text as a key.
    ///
    /// # Errors
    /// [`Invalid::Key`] when it is empty, longer than 255 bytes, or holds a byte outside `!`..=`~`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let reason = match text.bytes().find(|byte| !byte.is_ascii_graphic()) {
            None if text.is_empty() => "is empty",
            None if text.len() > Self::BYTES_MAX => "is longer than 255 bytes",
            None => return Ok(Self(text.into())),
            Some(b' ') => "holds a space",
            Some(byte) if byte.is_ascii() => "holds a control character",
            Some(_) => "holds a character outside ASCII",
        };
        Err(Invalid::Key { reason })
    }

    /// The text, byte for byte as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IdempotencyKey {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

impl TryFrom<String> for IdempotencyKey {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(&text)
    }
}

impl From<IdempotencyKey> for String {
    fn from(key: IdempotencyKey) -> Self {
        key.0.as_ref().to_owned()
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({:?})", self.as_str())
    }
}
