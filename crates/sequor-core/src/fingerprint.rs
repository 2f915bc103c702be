//! Whether two requests under one key are the same request.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::canonical::Json;
use crate::error::Invalid;

/// A versioned digest of a command's name and canonical payload; never of raw bytes.
///
/// Field order, white space and number spelling of the original request do not matter, array
/// order does. The first byte is the version of the rule, so that a release with another rule can
/// still tell which one an old record was made by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; Fingerprint::BYTES]);

impl Fingerprint {
    /// Its length: one byte of version, 32 of SHA-256.
    pub const BYTES: usize = 33;
    const VERSION: u8 = 1;

    /// The fingerprint of a command.
    ///
    /// ```
    /// use sequor_core::{Fingerprint, Json};
    ///
    /// let one = Json::parse(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#)?;
    /// let two = Json::parse(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#)?;
    /// assert_eq!(Fingerprint::of("charge", &one), Fingerprint::of("charge", &two));
    /// assert_ne!(Fingerprint::of("charge", &one), Fingerprint::of("refund", &one));
    /// # Ok::<(), sequor_core::Invalid>(())
    /// ```
    #[must_use]
    pub fn of(name: &str, payload: &Json) -> Self {
        // Invariant: a name holds visible ASCII only, so the line feed ends it without doubt.
        let digest = Sha256::new()
            .chain_update(name)
            .chain_update(b"\n")
            .chain_update(payload.as_str())
            .finalize();
        let mut bytes = [Self::VERSION; Self::BYTES];
        for (to, from) in bytes.iter_mut().skip(1).zip(digest) {
            *to = from;
        }
        Self(bytes)
    }

    /// Takes bytes that [`Fingerprint::as_bytes`] gave.
    ///
    /// # Errors
    /// [`Invalid::Fingerprint`] when they are not 33.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Invalid> {
        bytes.try_into().map(Self).map_err(|_| Invalid::Fingerprint)
    }

    /// Version and digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(")?;
        self.0.iter().take(5).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…)")
    }
}
