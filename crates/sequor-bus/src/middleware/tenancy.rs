//! First station: for whom?

use async_trait::async_trait;
use sequor_core::Error;

use super::{Middleware, Next};
use crate::envelope::Envelope;
use crate::reply::Reply;

/// Refuses a command without a tenant. (A nil tenant cannot be made.)
#[derive(Debug)]
pub(crate) struct Tenancy;

#[async_trait]
impl Middleware for Tenancy {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        envelope.tenant()?;
        next.run(envelope).await
    }
}
