//! The chain: tenancy → idempotency → authz → filters, and the user's own in between.

mod authorize;
mod filters;
mod flight;
mod idempotency;
mod replay;
mod tenancy;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sequor_core::{Error, Record};

pub(crate) use authorize::Authz;
pub use authorize::{AllowAll, Authorize};
pub use filters::Filter;
pub(crate) use filters::Filters;
pub(crate) use idempotency::{Idempotent, KeyRefused};
pub(crate) use replay::Judge;
pub(crate) use tenancy::Tenancy;

use crate::envelope::Envelope;
use crate::reply::Reply;

/// Something that stands around a command: it acts before, calls [`Next::run`], acts after. It
/// may answer with an error instead of going on.
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Handles a command on its way.
    ///
    /// # Errors
    /// Whatever the rest of the chain answers, or its own reason to stop here.
    ///
    /// # Cancellation
    /// When the caller drops its future, the middleware stops at its current `await`. Behind
    /// [`Next::run`] the command may have taken effect all the same.
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error>;

    /// Whether running it for a command that turns out to be a replay does no harm. Behind
    /// idempotency, an impure middleware makes the bus look a key up first, one trip more for each
    /// keyed command.
    fn is_pure(&self) -> bool {
        false
    }
}

/// Where a middleware stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Outermost: may still find out the tenant.
    BeforeTenancy,
    /// The tenant is known; runs for replays too.
    BeforeIdempotency,
    /// Does not run for replays.
    BeforeAuthz,
    /// Innermost: the command is allowed, but not yet checked.
    BeforeFilters,
}

/// The rest of the chain. It can be run once, so that a command is.
pub struct Next<'a> {
    stations: &'a [Arc<dyn Middleware>],
    end: &'a dyn End,
}

impl Next<'_> {
    /// Goes on with the command.
    ///
    /// # Errors
    /// Whatever stopped it.
    pub async fn run(self, envelope: &mut Envelope) -> Result<Reply, Error> {
        match self.stations.split_first() {
            Some((station, stations)) => {
                station.handle(envelope, Next { stations, end: self.end }).await
            }
            None => self.end.run(envelope).await,
        }
    }
}

impl<'a> Next<'a> {
    /// Where the command is made true, and where its key is known.
    pub(crate) fn end(&self) -> &'a dyn End {
        self.end
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Next({} stations)", self.stations.len())
    }
}

/// What stands at the chain's end: it makes the command true.
#[async_trait]
pub(crate) trait End: Send + Sync {
    async fn run(&self, envelope: &mut Envelope) -> Result<Reply, Error>;

    /// What is remembered under the command's key.
    async fn record(&self, envelope: &Envelope) -> Result<Option<Record>, Error>;
}

/// All stations, outermost first.
pub(crate) struct Chain {
    stations: Vec<Arc<dyn Middleware>>,
}

impl Chain {
    pub(crate) fn new(stations: Vec<Arc<dyn Middleware>>) -> Self {
        Self { stations }
    }

    pub(crate) async fn run(&self, envelope: &mut Envelope, end: &dyn End) -> Result<Reply, Error> {
        Next { stations: &self.stations, end }.run(envelope).await
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} stations)", self.stations.len())
    }
}
