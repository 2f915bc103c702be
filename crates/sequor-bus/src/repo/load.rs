//! Loading: from the cache, or from the store in one trip together with the key's record.

use std::sync::Arc;

use sequor_core::ports::{History, HistoryRequest, Store, Transaction};
use sequor_core::{Aggregate, IdempotencyKey, Record, StoreError, StreamId, Version, fold};

use super::{Ground, Ref, Repo};
use crate::cache::Entry;

impl<S: Store> Repo<S> {
    /// Loads an aggregate, and looks the key up on the way where that costs no trip of its own.
    pub(crate) async fn load_stream<A: Aggregate>(
        &mut self,
        stream: StreamId,
        key: Option<&IdempotencyKey>,
    ) -> Result<Ref<A>, StoreError> {
        if let Some(known) = self.entities.find(&stream) {
            return Ok(known);
        }
        self.take_turn(&stream).await;
        let (mut version, mut state) = self.cached::<A>(&stream).unwrap_or_default();
        if version == Version::NONE || !self.trusts_cache() {
            let History { record, events } = self.history(&stream, version, key).await?;
            self.known = record;
            if let Some(last) = events.last() {
                version = last.version;
                state = Arc::new(
                    fold(Arc::unwrap_or_clone(state), &events).map_err(unreadable(&stream))?,
                );
                let cached = Entry { version, state: Arc::clone(&state) as _ };
                self.backing.cache.put(stream.clone(), cached);
            }
        }
        Ok(self.entities.add(stream, version, state))
    }

    /// Claims the key in the open transaction, or finds its record. A decider's claim is part of
    /// its commit instead.
    pub(crate) async fn claim(
        &mut self,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, StoreError> {
        match &mut self.ground {
            Ground::Speculative { .. } => Ok(None),
            Ground::Transaction(transaction) => transaction.claim(self.tenant, key).await,
        }
    }

    async fn take_turn(&mut self, stream: &StreamId) {
        if let Ground::Speculative { retries, turn, .. } = &mut self.ground
            && turn.is_none()
        {
            *turn = self.backing.lanes.enter(stream, *retries > 0).await;
        }
    }

    /// A cached state to start from. After two conflicts it is left aside altogether.
    fn cached<A: Aggregate>(&self, stream: &StreamId) -> Option<(Version, Arc<A>)> {
        if let Ground::Speculative { retries: 2.., .. } = self.ground {
            return None;
        }
        self.backing.cache.get(stream)
    }

    /// A cached state may be behind. A decider's commit finds out, a handler's SQL would not.
    fn trusts_cache(&self) -> bool {
        matches!(self.ground, Ground::Speculative { cached: true, .. })
    }

    async fn history(
        &mut self,
        stream: &StreamId,
        after: Version,
        key: Option<&IdempotencyKey>,
    ) -> Result<History, StoreError> {
        let tenant = self.tenant;
        let request = HistoryRequest { tenant, key, stream: Some((stream, after)) };
        match &mut self.ground {
            Ground::Speculative { .. } => self.backing.store.history(request).await,
            Ground::Transaction(transaction) => transaction.history(request).await,
        }
    }
}

fn unreadable(stream: &StreamId) -> impl Fn(sequor_core::DecodeError) -> StoreError {
    move |reason| StoreError::Corrupt { what: format!("events of {stream}: {reason}") }
}
