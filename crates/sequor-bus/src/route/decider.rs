//! The route of a decider: load, decide.

use std::marker::PhantomData;

use async_trait::async_trait;
use sequor_core::ports::Store;
use sequor_core::{Decider, Error, Json, Name, Rejection, StreamId, Target, Version};

use super::{Route, encode_output};
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
        let key = envelope.meta.key.as_ref();
        let target = repo.load_stream::<A>(stream.clone(), key).await?;
        repo.halt_if_known()?;
        expect_version(&stream, repo.version(target), envelope)?;
        let mut decision = repo.get(target).decide(command);
        // A commit finds out that a cached state is behind; a rejection makes none, so it is said
        // on what is stored.
        if decision.is_err() && repo.catch_up(target, key).await? {
            decision = repo.get(target).decide(command);
        }
        repo.halt_if_known()?;
        let decision = decision.map_err(|no| Error::Rejected(Rejection::new(no)))?;
        let output = repo.take_in(target, decision)?;
        Ok(encode_output::<C>(&output)?)
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
