//! What a driver hands over so that the suite can run on it.

use async_trait::async_trait;
use sequor_core::ports::{Audit, Follow, Transact};
use sequor_core::{ProjectionError, TenantId};

/// The connection of a harness's store.
pub type Connection<H> = <<H as Harness>::Store as Transact>::Connection;

/// A store to be tried, and the little that the suite cannot know about it.
///
/// The suite makes one harness for each behaviour.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// The store.
    type Store: Follow + Audit;

    /// What the store can do beyond what every store must.
    fn abilities(&self) -> Abilities;

    /// A fresh, empty store, with room for the rows of [`Harness::add`]. Some behaviours ask for
    /// several, one after the other.
    async fn fresh(&self) -> Self::Store;

    /// Closes the store that [`Harness::fresh`] gave last, and opens it again. Called only with
    /// the ability [`Abilities::reopens`].
    async fn reopen(&self, store: Self::Store) -> Self::Store;

    /// Writes through a connection, as a projection or a handler does: adds 1 to the tenant's
    /// count and `amount` to its sum, in a row that begins with zeros.
    ///
    /// # Errors
    /// What the driver met.
    async fn add(
        &self,
        connection: &mut Connection<Self>,
        tenant: TenantId,
        amount: i64,
    ) -> Result<(), ProjectionError>;

    /// The tenant's committed row; zeros when there is none.
    async fn tally(&self, store: &Self::Store, tenant: TenantId) -> Tally;
}

/// The row that [`Harness::add`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was added to.
    pub count: u64,
    /// The sum of all amounts.
    pub sum: i64,
}

/// What a store can do beyond what every store must. A behaviour that needs a missing ability is
/// reported as not applicable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// What was committed is still there after the store was closed and opened again.
    pub reopens: bool,
    /// There is one writer: an open transaction holds off all others, whatever they write.
    pub one_writer: bool,
}

impl Abilities {
    /// No more than every store.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Declares [`Abilities::reopens`].
    #[must_use]
    pub fn reopens(mut self) -> Self {
        self.reopens = true;
        self
    }

    /// Declares [`Abilities::one_writer`].
    #[must_use]
    pub fn one_writer(mut self) -> Self {
        self.one_writer = true;
        self
    }
}

/// An ability that a behaviour needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// [`Abilities::reopens`].
    Reopens,
    /// [`Abilities::one_writer`].
    OneWriter,
}

impl Need {
    /// Why a behaviour cannot be asked of a store; `None` when it can.
    #[must_use]
    pub fn missing(self, abilities: Abilities) -> Option<&'static str> {
        let (has, why) = match self {
            Self::Reopens => (abilities.reopens, "the store keeps nothing when it closes"),
            Self::OneWriter => (abilities.one_writer, "the store has several writers"),
        };
        (!has).then_some(why)
    }
}
