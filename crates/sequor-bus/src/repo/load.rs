//! Loading: from the cache, or from the store in one trip together with the key's record.

use std::sync::Arc;

use sequor_core::ports::{History, HistoryRequest, Store, Transaction};
use sequor_core::{
    Aggregate, DecodeError, IdempotencyKey, Invalid, StoreError, StoredEvent, StreamId, Version,
    fold,
};

use super::{Ground, Ref, Repo};
use crate::cache::Entry;
use crate::envelope::Envelope;
use crate::error::Halt;

/// What a decider believes of an aggregate of which nothing is known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// Nothing: it must be loaded.
    None,
    /// That it is new. Its commit finds out when it is not.
    New,
}

impl<S: Store> Repo<S> {
    /// Loads an aggregate, and looks the key up on the way where that costs no trip of its own.
    pub(crate) async fn load_stream<A: Aggregate>(
        &mut self,
        stream: StreamId,
        belief: Belief,
        key: Option<&IdempotencyKey>,
    ) -> Result<Ref<A>, StoreError> {
        if let Some(known) = self.entities.find(&stream) {
            return known.ok_or_else(|| of_two_types(&stream));
        }
        let (mut version, mut state, will_do) = self.newest::<A>(&stream, belief);
        self.unchecked = will_do;
        if !will_do {
            let History { record, events } = self.history(&stream, version, key).await?;
            self.known = record;
            if let Some(last) = events.last() {
                (version, state) = (last.version, self.advance(&stream, state, &events)?);
            }
            if let Ground::Speculative(Some(speculation)) = &self.ground {
                speculation.has_asked_store();
            }
        }
        Ok(self.entities.add(stream, version, state))
    }

    /// Makes sure of what a refusal stands on: waits until it has become true, then loads what has
    /// happened since, and looks the key up on the way. Says whether something has.
    pub(crate) async fn ascertain<A: Aggregate>(
        &mut self,
        aggregate: Ref<A>,
        key: Option<&IdempotencyKey>,
    ) -> Result<bool, Halt> {
        self.become_certain().await?;
        Ok(self.catch_up(aggregate, key).await?)
    }

    /// Waits until what was decided on has become true; halts where it has come to nothing.
    pub(crate) async fn become_certain(&mut self) -> Result<(), Halt> {
        match &mut self.ground {
            Ground::Speculative(Some(speculation)) => speculation.become_certain().await,
            Ground::Speculative(None) | Ground::Transaction(_) => Ok(()),
        }
    }

    /// The aggregate in whose lane the unit of work is.
    pub(crate) fn stream_in_lane(&self) -> Option<StreamId> {
        match &self.ground {
            Ground::Speculative(speculation) => {
                speculation.as_ref().map(|one| one.stream().clone())
            }
            Ground::Transaction(_) => None,
        }
    }

    /// Whether the aggregate is as it will be if all goes well, not as it is.
    pub(crate) fn is_uncertain(&self) -> bool {
        matches!(&self.ground, Ground::Speculative(Some(one)) if one.is_uncertain())
    }

    async fn catch_up<A: Aggregate>(
        &mut self,
        aggregate: Ref<A>,
        key: Option<&IdempotencyKey>,
    ) -> Result<bool, StoreError> {
        if !std::mem::take(&mut self.unchecked) {
            return Ok(false);
        }
        let (stream, version) = self.entities.place(aggregate);
        let History { record, events } = self.history(&stream, version, key).await?;
        self.known = record;
        let Some(last) = events.last() else { return Ok(false) };
        let state = Arc::new(self.entities.state(aggregate).clone());
        let state = self.advance(&stream, state, &events)?;
        self.entities.renew(aggregate, last.version, state);
        Ok(true)
    }

    /// Claims the command's key in the open transaction; halts with its record where it is known.
    /// A decider's claim is part of its commit instead.
    pub(crate) async fn claim(&mut self, envelope: &Envelope) -> Result<(), Halt> {
        if envelope.tenant()? != self.meta.tenant {
            return Err(Invalid::TenantsDiffer.into());
        }
        self.meta = envelope.command_meta()?;
        let (Some(key), Ground::Transaction(transaction)) = (&envelope.meta.key, &mut self.ground)
        else {
            return Ok(());
        };
        if self.claimed == Some(envelope.command_id()) {
            return Ok(());
        }
        if let Some(record) = transaction.claim(self.meta.tenant, key).await? {
            return Err(Halt::Known(Box::new(record)));
        }
        self.claimed = Some(envelope.command_id());
        Ok(())
    }

    /// The newest state that we know of, and whether it will do. A decider's commit finds out when it
    /// is behind; a handler's SQL would not.
    fn newest<A: Aggregate>(
        &mut self,
        stream: &StreamId,
        belief: Belief,
    ) -> (Version, Arc<A>, bool) {
        let cached = self.backing.cache.get::<A>(stream);
        match &mut self.ground {
            Ground::Speculative(Some(speculation)) => speculation.newest(cached, belief),
            Ground::Speculative(None) | Ground::Transaction(_) => {
                let (version, state) = cached.unwrap_or_default();
                (version, state, false)
            }
        }
    }

    /// Advances a state by what has happened since, and keeps it for the commands to come.
    fn advance<A: Aggregate>(
        &self,
        stream: &StreamId,
        state: Arc<A>,
        events: &[StoredEvent],
    ) -> Result<Arc<A>, StoreError> {
        let state = fold(Arc::unwrap_or_clone(state), events).map_err(unreadable(stream))?;
        let state = Arc::new(state);
        if let Some(last) = events.last() {
            let entry = Entry { version: last.version, state: Arc::clone(&state) as _ };
            self.backing.cache.put(stream.clone(), entry);
        }
        Ok(state)
    }

    async fn history(
        &mut self,
        stream: &StreamId,
        after: Version,
        key: Option<&IdempotencyKey>,
    ) -> Result<History, StoreError> {
        let tenant = self.meta.tenant;
        let request = HistoryRequest { tenant, key, stream: Some((stream, after)) };
        match &mut self.ground {
            Ground::Speculative(_) => self.backing.store.history(request).await,
            Ground::Transaction(transaction) => {
                self.past.note(stream);
                transaction.history(request).await
            }
        }
    }
}

fn unreadable(stream: &StreamId) -> impl Fn(DecodeError) -> StoreError {
    move |reason| StoreError::Corrupt { what: format!("events of {stream}: {reason}") }
}

fn of_two_types(stream: &StreamId) -> StoreError {
    let name = &stream.aggregate;
    StoreError::Corrupt { what: format!("two types of aggregate are called `{name}`: rename one") }
}
