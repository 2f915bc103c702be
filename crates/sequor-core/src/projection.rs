//! Read models: one trait, wherever their rows are written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::aggregate::Aggregate;
use crate::event::StoredEvent;
use crate::tenant::TenantId;

/// A read model whose rows are written through the store's connection `C`: a
/// `sqlx::SqliteConnection` on SQLite, a `sqlx::PgConnection` on PostgreSQL, `Tables` in memory.
///
/// The same projection can be placed
/// * *inline*: in the command's own transaction, so that its rows become visible together with the
///   events, or not at all. It lengthens every command that it looks at.
/// * *behind the commands*, by a runner: in a transaction of its own, together with its checkpoint,
///   so that each event takes effect exactly once. Commands do not wait for it.
/// * *live*: folded when it is asked.
///
/// Wherever it is placed, it is shown each event that it wants once, those of a stream in the order
/// of their versions, those of a tenant in the order of their positions. Rows belong to the tenant
/// of their event, `event.stream.tenant`; on PostgreSQL its SQL sees no other tenant's.
#[async_trait]
pub trait Projection<C: ?Sized + Send>: Send + Sync + 'static {
    /// Names the projection, and with its version its place in the log: 1 to 128 visible ASCII
    /// characters. Builders refuse anything else, and a name that is taken.
    fn name(&self) -> &str;

    /// Grows when its rows are to be made anew, for what it does has changed. From 1, the default.
    fn version(&self) -> u32 {
        1
    }

    /// Which events it is shown. Default: all of them.
    fn wants(&self) -> Wants {
        Wants::everything()
    }

    /// Takes in one event.
    ///
    /// # Errors
    /// Inline, any error rolls back the command, and with it this event. Behind the commands, an
    /// error of the connection is tried again; any other, again and again, parks the event's stream.
    async fn project(&self, event: &StoredEvent, connection: &mut C)
    -> Result<(), ProjectionError>;

    /// Takes in several events of one tenant, in the order of their positions. Default: one after
    /// the other. Worth writing where many events end in few rows.
    ///
    /// # Errors
    /// As [`Projection::project`]; nothing of it becomes true, and each event is shown alone.
    async fn project_all(
        &self,
        events: &[&StoredEvent],
        connection: &mut C,
    ) -> Result<(), ProjectionError> {
        for event in events {
            self.project(event, connection).await?;
        }
        Ok(())
    }
}

/// Why a projection could not take in an event: whatever it met, such as the driver's error.
pub type ProjectionError = Box<dyn std::error::Error + Send + Sync>;

/// Which events a projection is shown: all, or those of some aggregates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wants(Option<Vec<&'static str>>);

impl Wants {
    /// Every event of the store, also those of aggregates that are yet to be invented.
    #[must_use]
    pub fn everything() -> Self {
        Self(None)
    }

    /// The events of the aggregate `A`. Those that this build does not know are among them: a
    /// projection that fails on them is better than rows that lack them.
    #[must_use]
    pub fn events_of<A: Aggregate>() -> Self {
        Self(Some(vec![A::NAME]))
    }

    /// These, and the events of the aggregate `A`.
    #[must_use]
    pub fn and_of<A: Aggregate>(self) -> Self {
        Self(self.0.map(|mut aggregates| {
            aggregates.push(A::NAME);
            aggregates
        }))
    }

    /// Whether this event is wanted.
    #[must_use]
    pub fn include(&self, event: &StoredEvent) -> bool {
        let wanted = self.0.as_ref();
        wanted.is_none_or(|wanted| wanted.contains(&event.stream.aggregate.as_str()))
    }
}

/// Events by their tenants, each tenant's in the order in which they come.
pub fn by_tenant<'e>(
    events: impl IntoIterator<Item = &'e StoredEvent>,
) -> BTreeMap<TenantId, Vec<&'e StoredEvent>> {
    let mut tenants = BTreeMap::<_, Vec<_>>::new();
    for event in events {
        tenants.entry(event.stream.tenant).or_default().push(event);
    }
    tenants
}

/// The inline projections of a service, handed to the store with each commit.
pub struct Projections<C: ?Sized>(pub Arc<[Arc<dyn Projection<C>>]>);

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
