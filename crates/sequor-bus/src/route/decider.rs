//! The route of a decider: load, decide.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use async_trait::async_trait;
use sequor_core::ports::Store;
use sequor_core::{
    Decider, Decision, Error, Invalid, Json, Name, Rejection, StreamId, Target, Version,
};

use super::{Route, encode_output};
use crate::envelope::Envelope;
use crate::error::{Halt, foreign_command};
use crate::repo::{Belief, Ref, Repo};

/// The route of commands `C` to the aggregate `A` that decides them.
pub(crate) struct DeciderRoute<A, C>(pub(crate) PhantomData<fn() -> (A, C)>);

/// Why there is no decision.
enum No {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

#[async_trait]
impl<S: Store, C: Target, A: Decider<C>> Route<S> for DeciderRoute<A, C> {
    fn decided_by(&self, envelope: &Envelope) -> Result<Option<StreamId>, Invalid> {
        let Some(command) = envelope.command::<C>() else { return Ok(None) };
        let (tenant, aggregate) = (envelope.tenant()?, Name::new(A::NAME)?);
        Ok(Some(StreamId { tenant, aggregate, id: command.aggregate_id()? }))
    }

    async fn run(&self, envelope: &Envelope, repo: &mut Repo<S>) -> Result<Json, Halt> {
        let command = envelope.command::<C>().ok_or_else(foreign_command)?;
        let stream = match repo.stream_in_lane() {
            Some(stream) => stream,
            None => Route::<S>::decided_by(self, envelope)?.ok_or_else(foreign_command)?,
        };
        let key = envelope.meta.key.as_ref();
        let belief = if command.creates() { Belief::New } else { Belief::None };
        let target = repo.load_stream::<A>(stream.clone(), belief, key).await?;
        repo.halt_if_known()?;
        let decide = |repo: &mut Repo<S>| {
            expect_version(&stream, repo.version(target), envelope)?;
            let decision = repo.get(target).decide(command);
            decision.map_err(|no| Error::Rejected(Rejection::new(no)))
        };
        let mut decision = pure(repo, decide);
        // A commit finds out that a state is behind, or never came to be; a refusal makes none, so
        // it is said on what is stored.
        if decision.is_err() && repo.ascertain(target, key).await? {
            decision = pure(repo, decide);
        }
        repo.halt_if_known()?;
        let decision = decision.map_err(No::say)?;
        let output = pure(repo, |repo| take_in::<_, C, _>(repo, target, decision));
        if output.is_err() {
            repo.become_certain().await?;
        }
        Ok(output.map_err(No::say)?)
    }
}

impl No {
    /// Says no to the caller.
    fn say(self) -> Error {
        match self {
            Self::Error(error) => error,
            Self::Panic(panic) => resume_unwind(panic),
        }
    }
}

/// Runs what has no effect but on the unit of work. On a state that is yet to come its panic is
/// nobody's before that has come.
fn pure<S: Store, T>(
    repo: &mut Repo<S>,
    run: impl FnOnce(&mut Repo<S>) -> Result<T, Error>,
) -> Result<T, No> {
    if !repo.is_uncertain() {
        return run(repo).map_err(No::Error);
    }
    // Unwind safety: after a panic the unit of work is only asked for what is stored.
    let ran = catch_unwind(AssertUnwindSafe(|| run(repo)));
    ran.map_err(No::Panic)?.map_err(No::Error)
}

fn take_in<S: Store, C: Target, A: Decider<C>>(
    repo: &mut Repo<S>,
    target: Ref<A>,
    decision: Decision<A::Event, C::Output>,
) -> Result<Json, Error> {
    let output = repo.take_in(target, decision)?;
    Ok(encode_output::<C>(&output)?)
}

fn expect_version(stream: &StreamId, actual: Version, envelope: &Envelope) -> Result<(), Error> {
    match envelope.options.if_version {
        Some(expected) if expected != actual => {
            Err(Error::Conflict { stream: stream.clone(), expected, actual })
        }
        _ => Ok(()),
    }
}
