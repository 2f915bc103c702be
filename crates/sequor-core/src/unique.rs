//! Values that one aggregate of a tenant holds at a time: an e-mail address, a seat.

use std::sync::Arc;

use crate::error::Invalid;
use crate::names::{Name, is_short_text};

/// A value within a scope, unique in its tenant: 1 to 255 bytes without control characters.
///
/// Values compare byte for byte; fold case or spelling before you claim them, if they should be
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UniqueKey {
    /// What kind of value, such as `customer.email`.
    pub scope: Name,
    /// The value.
    pub value: Arc<str>,
}

impl UniqueKey {
    /// Takes a scope and a value.
    ///
    /// # Errors
    /// [`Invalid::UniqueValue`] when the value is empty, longer than 255 bytes or holds a control
    /// character.
    pub fn new(scope: Name, value: &str) -> Result<Self, Invalid> {
        if is_short_text(value) {
            return Ok(Self { scope, value: value.into() });
        }
        Err(Invalid::UniqueValue { scope })
    }
}

/// What an aggregate's commit does to its unique keys. An aggregate holds at most one value in a
/// scope; all releases of a commit happen before its claims, so a swap inside one commit works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UniqueChange {
    /// Hold this value, and let go of the one held in the same scope before.
    Hold(UniqueKey),
    /// Let go of what is held in this scope.
    Release(Name),
    /// The aggregate ends: let go of everything.
    ReleaseAll,
}
