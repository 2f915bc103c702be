//! [`CommandService`]: one command's journey, top to bottom.

use std::fmt;
use std::sync::Arc;

use sequor_core::ports::{Clock, HistoryRequest, Ids, Store};
use sequor_core::{Command, Error, IdempotencyKey, Json, Meta, Receipt, Record, TenantId};
use tracing::Instrument as _;

use crate::batch::Batch;
use crate::builder::Builder;
use crate::dispatch::{Alone, Dispatch, run_together};
use crate::envelope::{Envelope, Options};
use crate::error::{of_reading, typed};
use crate::middleware::Chain;
use crate::route::refuse_inside;

/// Executes commands so that each takes effect once, whoever retries it.
///
/// ```text
/// execute(command, meta)
///   tenancy → idempotency → authz → filters        middleware, outermost first
///     retry → load → decide / handle → Repo::commit
/// ```
///
/// Cloning is cheap; clones share everything.
pub struct CommandService<S: Store> {
    pub(crate) inner: Arc<Inner<S>>,
}

pub(crate) struct Inner<S: Store> {
    pub(crate) chain: Chain,
    pub(crate) dispatch: Dispatch<S>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl<S: Store> CommandService<S> {
    /// Starts a service over a store.
    pub fn builder(store: S) -> Builder<S> {
        Builder::new(store)
    }

    /// Executes one command.
    ///
    /// With a key in `meta` it takes effect once: a retry gets what the idempotency mode says,
    /// by default a receipt that names the first execution, and nothing is done again.
    ///
    /// # Errors
    /// [`Error`], by what the caller does next. Only [`Error::Unknown`] leaves open whether the
    /// command took effect; a retry with the same key tells.
    ///
    /// # Cancellation
    /// Dropping the future never halves a command: it takes effect whole, or not at all. Which of
    /// the two is then unknown to the caller, and a retry with the same key tells.
    pub async fn execute<C: Command>(
        &self,
        command: C,
        meta: Meta,
    ) -> Result<Receipt<C::Output>, Error<C::Rejection>> {
        self.execute_with(command, meta, Options::default()).await
    }

    /// Executes one command with options of its own: another mode, an expected version.
    ///
    /// # Errors
    /// As [`CommandService::execute`].
    ///
    /// # Cancellation
    /// As [`CommandService::execute`].
    pub async fn execute_with<C: Command>(
        &self,
        command: C,
        meta: Meta,
        options: Options,
    ) -> Result<Receipt<C::Output>, Error<C::Rejection>> {
        let Inner { chain, dispatch, clock, ids } = &*self.inner;
        refuse_inside(dispatch.backing.service())?;
        let sealed = Envelope::seal(Arc::new(command), meta, options, &dispatch.backing.limits)?;
        let mut envelope = sealed.stamp(ids.next(), clock.now());
        let span = envelope.span();
        let reply = chain.run(&mut envelope, &Alone(&self.inner)).instrument(span).await;
        let reply = reply.map_err(|error| typed(error, envelope.name()))?;
        reply.receipt(self.store().epoch())
    }

    /// Executes several commands in one transaction, first in, first out: all take effect, or none.
    ///
    /// A command whose key is known is answered by its record, as its mode says, and does nothing; the
    /// others go on. In `Strict` mode its `Replay` is an error like any other.
    ///
    /// # Errors
    /// The first command's error that fails; nothing was written.
    ///
    /// # Cancellation
    /// As [`CommandService::execute`], for all together.
    pub async fn execute_all(&self, batch: Batch) -> Result<Vec<Receipt<Json>>, Error> {
        let Inner { dispatch, clock, ids, .. } = &*self.inner;
        refuse_inside(dispatch.backing.service())?;
        let envelopes = batch.seal(dispatch.commands_max, &dispatch.backing.limits)?.into_iter();
        let envelopes: Vec<_> = envelopes.map(|one| one.stamp(ids.next(), clock.now())).collect();
        let replies = run_together(&self.inner, &envelopes).await?;
        replies.into_iter().map(|reply| reply.receipt(self.store().epoch())).collect()
    }

    /// What became of the command under a key: its id and name, streams and versions, position and
    /// output. `None` when the key is unknown, and so nothing has taken effect under it.
    ///
    /// It asks no policy: hand the output on only to whom it belongs.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Corrupt`] when the record cannot be read.
    pub async fn outcome(
        &self,
        tenant: TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, Error> {
        let request = HistoryRequest { tenant, key: Some(key), stream: None };
        let history = self.store().history(request).await;
        history.map(|history| history.record).map_err(of_reading)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.inner.dispatch.backing.store
    }
}

impl<S: Store> Clone for CommandService<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: Store> fmt::Debug for CommandService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandService")
            .field("chain", &self.inner.chain)
            .field("commands", &self.inner.dispatch.routes.names())
            .finish_non_exhaustive()
    }
}
