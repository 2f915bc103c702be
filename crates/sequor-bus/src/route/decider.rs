//! The route of a decider: load, decide.

use std::marker::PhantomData;

use async_trait::async_trait;
use sequor_core::ports::Store;
use sequor_core::{Decider, Error, Json, Name, Rejection, StreamId, Target, Version};

use super::Route;
use crate::envelope::Envelope;
use crate::error::{Halt, foreign_command};
use crate::repo::Repo;

/// The route of commands `C` to the aggregate `A` that decides them.
pub(crate) struct DeciderRoute<A, C>(pub(crate) PhantomData<fn() -> (A, C)>);

#[async_trait]
impl<S: Store, C: Target, A: Decider<C>> Route<S> for DeciderRoute<A, C> {
    fn needs_transaction(&self) -> bool {
        false
    }

    async fn run(&self, envelope: &Envelope, repo: &mut Repo<S>) -> Result<Json, Halt> {
        let command = envelope.command::<C>().ok_or_else(foreign_command)?;
        let stream = StreamId {
            tenant: envelope.tenant()?,
            aggregate: Name::new(A::NAME)?,
            id: command.aggregate_id()?,
        };
        let target = repo.load_stream::<A>(stream.clone(), envelope.meta.key.as_ref()).await?;
        if let Some(record) = repo.take_known() {
            return Err(Halt::Known(Box::new(record)));
        }
        expect_version(&stream, repo.version(target), envelope)?;
        let decision = repo.get(target).decide(command);
        let decision = decision.map_err(|no| Error::Rejected(Rejection::new(no)))?;
        let output = repo.take_in(target, decision)?;
        Ok(Json::of(&output)?)
    }
}

fn expect_version(stream: &StreamId, actual: Version, envelope: &Envelope) -> Result<(), Error> {
    match envelope.options.if_version {
        Some(expected) if expected != actual => {
            Err(Error::Conflict { stream: stream.clone(), expected, actual })
        }
        _ => Ok(()),
    }
}
