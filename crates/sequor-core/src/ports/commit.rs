//! Where a decided command becomes true.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

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
    /// Gives a commit its place, and comes back before it is true. Waits for room where many are
    /// under way.
    ///
    /// Commits of one process that touch the same stream are judged in the order of their places.
    /// So a commit may be decided on the version that the one before it has yet to make: should
    /// that one come to nothing, this one is a [`StoreError::Conflict`].
    ///
    /// # Errors
    /// [`StoreError::Busy`] when there was no room for too long, [`StoreError::Unavailable`],
    /// [`StoreError::Invalid`]; nothing was written. A store that judges at once may answer here
    /// whatever [`CommitCommand::commit`] may.
    ///
    /// # Cancellation
    /// As [`CommitCommand::commit`].
    async fn submit(
        &self,
        commit: Commit,
        projections: &Projections<Self::Connection>,
    ) -> Result<Submitted, StoreError>;

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
    ) -> Result<Committed, StoreError> {
        self.submit(commit, projections).await?.await
    }
}

/// A commit that has its place, and the wait for what becomes of it. Its errors are those of
/// [`CommitCommand::commit`].
///
/// Dropping it changes nothing: the commit becomes true whole, or not at all.
#[must_use = "what became of the commit is known once this was awaited"]
pub struct Submitted(Pin<Box<dyn Future<Output = Result<Committed, StoreError>> + Send>>);

impl Submitted {
    /// A commit whose answer is yet to come.
    pub fn new(
        answer: impl Future<Output = Result<Committed, StoreError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(answer))
    }

    /// A commit that was judged at once.
    pub fn ready(answer: Result<Committed, StoreError>) -> Self {
        Self::new(ready(answer))
    }
}

impl Future for Submitted {
    type Output = Result<Committed, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Submitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Submitted")
    }
}
