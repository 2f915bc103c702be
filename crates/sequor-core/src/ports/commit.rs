//! Where a decided command becomes true.

use async_trait::async_trait;

use super::transaction::Transact;
use crate::commit::Commit;
use crate::error::StoreError;
use crate::projection::Projections;
use crate::record::Record;

/// What became of a commit.
#[derive(Clone, Debug)]
pub enum Committed {
    /// It is true now, and durable as far as the store promises.
    Fresh(Record),
    /// The key was known: this record answers, and nothing was written. Whether it answers the
    /// *same* request is for the caller to see from its fingerprint.
    Known(Record),
}

/// Makes a decided command true, in one transaction of its own.
///
/// Stores gather concurrent commits into one transaction and one flush. Each commit of such a
/// group fails, answers or succeeds on its own.
#[async_trait]
pub trait CommitCommand: Transact {
    /// Commits, or finds that the key is known.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when a stream has moved on, [`StoreError::UniqueTaken`] when a
    /// value has another holder; in both cases, and in all others but [`StoreError::Unknown`],
    /// nothing was written.
    ///
    /// # Cancellation
    /// Dropping the future neither stops nor halves the commit: it becomes true whole, or not at
    /// all. The key tells which.
    async fn commit(
        &self,
        commit: Commit,
        projections: &Projections<Self::Connection>,
    ) -> Result<Committed, StoreError>;
}
