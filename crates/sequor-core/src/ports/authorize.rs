//! The word for "no" of an authorisation policy.

/// The actor may not do this. Names the policy's reason for logs; it holds no data of the tenant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("denied: {reason}")]
pub struct Denied {
    /// For logs and tests, such as `needs role treasurer`.
    pub reason: String,
}

impl Denied {
    /// Denies for a reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}
