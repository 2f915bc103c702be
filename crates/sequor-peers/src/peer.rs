//! What each system must be able to do.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use uuid::Uuid;

/// A library with its store: knows how to make its tables and how to open them.
#[async_trait]
pub(crate) trait System: Sync {
    /// As in the tables and for `--only`.
    fn name(&self) -> &'static str;

    /// Versions, and the settings that were chosen.
    fn about(&self) -> &'static str;

    /// The same without a memory of accounts from one command to the next, if it has one.
    fn cold(&self) -> Option<&'static dyn System> {
        None
    }

    /// Makes its tables in an empty database.
    async fn install(&self, place: &Place) -> Result<()>;

    /// Opens it on its tables.
    async fn open(&self, place: &Place) -> Result<Arc<dyn Accounts>>;
}

/// Where a database is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// A URL of PostgreSQL, or the path of a file.
    pub(crate) url: String,
    /// Whether a commit on SQLite is to reach the disk; PostgreSQL knows by itself.
    pub(crate) flushes: bool,
}

/// Whether accounts are remembered from one command to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// By default.
    On,
    /// To see what a load costs.
    Off,
}

/// Accounts as a user of the system would keep them.
#[async_trait]
pub(crate) trait Accounts: Send + Sync {
    /// Opens an account that is not there yet.
    async fn create(&self, account: Uuid) -> Result<(), Failure>;

    /// Pays one cent into an account that is there. One try.
    async fn deposit(&self, account: Uuid) -> Result<(), Failure>;

    /// Lets go of all connections.
    async fn close(&self);
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Somebody else was faster on the same account: try again.
    Conflict,
    /// Anything else.
    Other(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// An account that is there from the start, by its number.
pub(crate) fn account(number: u64) -> Uuid {
    Uuid::from_u128(0x018f_2f6e_0000_7000_8000_0000_0000_0000 + u128::from(number))
}

/// A new id that sorts by time.
#[expect(clippy::disallowed_methods, reason = "nothing here is replayed")]
pub(crate) fn new_id() -> Uuid {
    Uuid::now_v7()
}
