//! Why a service cannot be built.

use sequor_core::EvolutionError;

/// Why a service cannot be built, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two handlers take the same command.
    #[error("two handlers take command `{name}`: register one, or rename one of the commands")]
    HandlerTwice {
        /// The command.
        name: &'static str,
    },
    /// A name breaks its rules.
    #[error("`{name}` is no {what} name: take 1 to 128 visible ASCII characters")]
    Name {
        /// The name.
        name: &'static str,
        /// Of what.
        what: &'static str,
    },
    /// Older events of an aggregate lead nowhere.
    #[error("aggregate `{aggregate}`: {reason}")]
    Evolution {
        /// Which one.
        aggregate: &'static str,
        /// What is wrong, and what to do about it.
        reason: EvolutionError,
    },
    /// A projection has no name.
    #[error("a projection has no name: let `name()` return 1 to 128 visible ASCII characters")]
    ProjectionWithoutName,
    /// Two projections have the same name.
    #[error("two projections are called `{name}`: rename one")]
    ProjectionTwice {
        /// The name.
        name: String,
    },
    /// Idempotency without tenancy.
    #[error(
        "idempotency needs tenancy, a key means nothing without its tenant: \
         drop `without_tenancy()` or add `without_idempotency()`"
    )]
    IdempotencyWithoutTenancy,
    /// A setting is out of its range.
    #[error("`{setting}` is out of range: take {range}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What it takes.
        range: &'static str,
    },
}

impl BuildError {
    pub(super) fn setting(setting: &'static str, range: &'static str) -> Self {
        Self::Setting { setting, range }
    }
}
