//! Third station: may they?

use std::sync::Arc;

use async_trait::async_trait;
use sequor_core::Error;
use sequor_core::ports::Denied;

use super::{Middleware, Next};
use crate::envelope::Envelope;
use crate::reply::Reply;

/// Says whether an actor may do something.
#[async_trait]
pub trait Authorize: Send + Sync + 'static {
    /// Allows or denies.
    ///
    /// # Errors
    /// [`Denied`], which the caller sees as `Unauthorized`.
    async fn authorize(&self, envelope: &Envelope) -> Result<(), Denied>;

    /// Whether asking for a command that turns out to be a replay does no harm. An impure policy
    /// makes the bus look a key up first, one trip more for each keyed command.
    fn is_pure(&self) -> bool {
        false
    }
}

/// Allows everything: for services whose callers have been checked before.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

#[async_trait]
impl Authorize for AllowAll {
    async fn authorize(&self, _: &Envelope) -> Result<(), Denied> {
        Ok(())
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// The station.
pub(crate) struct Authz(pub(crate) Arc<dyn Authorize>);

#[async_trait]
impl Middleware for Authz {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        ask(&*self.0, envelope).await?;
        next.run(envelope).await
    }

    fn is_pure(&self) -> bool {
        self.0.is_pure()
    }
}

/// Asks a policy, in the words of an error.
pub(super) async fn ask(policy: &dyn Authorize, envelope: &Envelope) -> Result<(), Error> {
    let denied = |Denied { reason }| Error::Unauthorized { reason };
    policy.authorize(envelope).await.map_err(denied)
}
