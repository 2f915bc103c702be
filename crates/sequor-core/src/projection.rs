//! Read models that are written in the command's own transaction.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::event::StoredEvent;

/// A read model whose rows are written in the command's own transaction, through the store's
/// connection `C`: a `sqlx::SqliteConnection` on SQLite, `Tables` in memory.
///
/// Its rows become visible together with the events, or not at all. It runs for every event of
/// the store, in position order, and lengthens every command that it looks at.
#[async_trait]
pub trait InlineProjection<C: ?Sized + Send>: Send + Sync + 'static {
    /// Names the projection in errors: 1 to 128 visible ASCII characters; the builder refuses
    /// anything else, and a name that is taken.
    fn name(&self) -> &str;

    /// Takes in one event.
    ///
    /// # Errors
    /// Any error rolls back the command, and with it this event.
    async fn project(&self, event: &StoredEvent, connection: &mut C)
    -> Result<(), ProjectionError>;
}

/// Why a projection could not take in an event: whatever it met, such as the driver's error.
pub type ProjectionError = Box<dyn std::error::Error + Send + Sync>;

/// The inline projections of a service, handed to the store with each commit.
pub struct Projections<C: ?Sized>(pub Arc<[Arc<dyn InlineProjection<C>>]>);

impl<C: ?Sized + Send + 'static> Projections<C> {
    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::new([]))
    }
}

impl<C: ?Sized> Clone for Projections<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: ?Sized + Send + 'static> fmt::Debug for Projections<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|projection| projection.name())).finish()
    }
}
