//! Last station: is the command sound?

use async_trait::async_trait;
use sequor_core::{Error, Invalid};

use super::{Middleware, Next};
use crate::envelope::Envelope;
use crate::reply::Reply;

/// A check of the command itself: a domain policy that needs no state. Pure, so it may be run for
/// a command that turns out to be a replay.
pub trait Filter: Send + Sync + 'static {
    /// Lets the command pass or refuses it.
    ///
    /// # Errors
    /// [`Invalid`]: the caller must change the request.
    fn check(&self, envelope: &Envelope) -> Result<(), Invalid>;
}

impl<F: Fn(&Envelope) -> Result<(), Invalid> + Send + Sync + 'static> Filter for F {
    fn check(&self, envelope: &Envelope) -> Result<(), Invalid> {
        self(envelope)
    }
}

/// The station: the command's own `validate` first, then the filters in the order in which they
/// were added.
#[derive(Default)]
pub(crate) struct Filters(pub(crate) Vec<Box<dyn Filter>>);

#[async_trait]
impl Middleware for Filters {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        envelope.validate()?;
        self.0.iter().try_for_each(|filter| filter.check(envelope))?;
        next.run(envelope).await
    }

    fn is_pure(&self) -> bool {
        true
    }
}
