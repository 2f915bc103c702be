//! What became of a line, and of all of them.

use std::fmt;

use sequor::{Error, Receipt};

/// What became of a line.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It took effect now.
    Executed,
    /// It had taken effect before.
    Replayed,
    /// The domain said no.
    Rejected(String),
    /// It cannot take effect as it stands: its key names something else, for one.
    Failed(String),
    /// It is no command.
    Bad(String),
    /// The database is in trouble, and the next line would be, too.
    Stopped(String),
}

impl<O, R: fmt::Display> From<Result<Receipt<O>, Error<R>>> for Outcome {
    fn from(answer: Result<Receipt<O>, Error<R>>) -> Self {
        let error = match answer {
            Ok(receipt) if receipt.is_replayed() => return Self::Replayed,
            Ok(_) => return Self::Executed,
            Err(error) => error,
        };
        let said = error.to_string();
        if let Error::Unavailable { .. } | Error::Unknown { .. } | Error::Corrupt { .. } = error {
            Self::Stopped(said)
        } else if let Error::Rejected(_) = error {
            Self::Rejected(said)
        } else if let Error::Invalid(_) = error {
            Self::Bad(said)
        } else if let Error::KeyReused { .. } = error {
            Self::Failed(format!("{said}; take a new key for a new intent"))
        } else {
            Self::Failed(said)
        }
    }
}

/// What became of all lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(super) executed: u64,
    pub(super) replayed: u64,
    pub(super) rejected: u64,
    pub(super) failed: u64,
    pub(super) bad: u64,
}

impl Summary {
    /// Whether every line took effect, now or before.
    pub(crate) fn is_clean(&self) -> bool {
        (self.rejected, self.failed, self.bad) == (0, 0, 0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executed, replayed, rejected, failed, bad } = self;
        write!(f, "{executed} executed, {replayed} replayed")?;
        write!(f, ", {rejected} rejected, {failed} failed, {bad} bad")
    }
}
