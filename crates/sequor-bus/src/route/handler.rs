//! The route of a handler: claim, then whatever it does in its transaction.

use std::marker::PhantomData;

use async_trait::async_trait;
use sequor_core::ports::Store;
use sequor_core::{Command, Error, Invalid, Json, StreamId};

use super::{Route, encode_output};
use crate::envelope::Envelope;
use crate::error::{Halt, erase, foreign_command};
use crate::repo::Repo;

/// Handles a command in a transaction: it may load several aggregates, write rows of its own
/// through [`Repo::connection`], and issue further commands.
///
/// The key was claimed before, in the same transaction. The handler may be run again after a
/// conflict, so it calls nobody outside.
///
/// Write `#[sequor::async_trait]` above the `impl`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle `{C}` on this store",
    note = "write `#[async_trait] impl<S: Store> Handler<{C}, S> for {Self}`"
)]
#[async_trait]
pub trait Handler<C: Command, S: Store>: Send + Sync + 'static {
    /// Handles the command.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the domain's own rejection, or whatever the unit of work answered;
    /// then nothing is written.
    ///
    /// # Cancellation
    /// When the caller drops its future, the handler stops at its current `await` and the
    /// transaction rolls back.
    async fn handle(
        &self,
        command: &C,
        repo: &mut Repo<S>,
    ) -> Result<C::Output, Error<C::Rejection>>;
}

tokio::task_local! {
    /// The service for which a handler works in this task.
    static INSIDE: ServiceId;
}

/// Tells services apart, as long as they live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceId(pub(crate) usize);

/// Refuses to execute a command inside a handler of the same service. Its transaction is open, and
/// where there is one writer the command would wait for itself.
pub(crate) fn refuse_inside(service: ServiceId) -> Result<(), Invalid> {
    match INSIDE.try_with(|inside| *inside == service) {
        Ok(true) => Err(Invalid::InsideHandler),
        Ok(false) | Err(_) => Ok(()),
    }
}

/// The route of commands `C` to their handler.
pub(crate) struct HandlerRoute<H, C>(pub(crate) H, pub(crate) PhantomData<fn() -> C>);

#[async_trait]
impl<S: Store, C: Command, H: Handler<C, S>> Route<S> for HandlerRoute<H, C> {
    fn decided_by(&self, _: &Envelope) -> Result<Option<StreamId>, Invalid> {
        Ok(None)
    }

    async fn run(&self, envelope: &Envelope, repo: &mut Repo<S>) -> Result<Json, Halt> {
        if envelope.options.if_version.is_some() {
            return Err(Invalid::IfVersionWithoutDecider.into());
        }
        let command = envelope.command::<C>().ok_or_else(foreign_command)?;
        let handled = INSIDE.scope(repo.service(), self.0.handle(command, repo)).await;
        let output = handled.map_err(|error| repo.halt(erase(error)))?;
        Ok(encode_output::<C>(&output)?)
    }
}
