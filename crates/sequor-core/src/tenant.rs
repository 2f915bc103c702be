//! Who a thing belongs to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Invalid;

/// A tenant: a UUID that is not nil. It stands in every row, and in every key that a caller can
/// choose.
///
/// There is no default tenant, so a forgotten one cannot turn into somebody's data.
///
/// ```
/// use sequor_core::TenantId;
///
/// assert!("018f2f6e-0000-7000-8000-000000000001".parse::<TenantId>().is_ok());
/// assert!("00000000-0000-0000-0000-000000000000".parse::<TenantId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Uuid", into = "Uuid")]
pub struct TenantId(Uuid);

impl TenantId {
    /// Takes a UUID as a tenant.
    ///
    /// # Errors
    /// [`Invalid::TenantNil`] when the UUID is nil.
    pub const fn new(id: Uuid) -> Result<Self, Invalid> {
        if id.is_nil() {
            return Err(Invalid::TenantNil);
        }
        Ok(Self(id))
    }

    /// The UUID.
    #[must_use]
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl TryFrom<Uuid> for TenantId {
    type Error = Invalid;

    fn try_from(id: Uuid) -> Result<Self, Invalid> {
        Self::new(id)
    }
}

impl From<TenantId> for Uuid {
    fn from(tenant: TenantId) -> Self {
        tenant.0
    }
}

impl FromStr for TenantId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let id = Uuid::parse_str(text).map_err(|_| Invalid::TenantMalformed)?;
        Self::new(id)
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantId({})", self.0)
    }
}
