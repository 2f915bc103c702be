//! Duplicates inside one process share a flight: one runs, the others wait for its record.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sequor_core::{Fingerprint, IdempotencyKey, Record, TenantId};
use tokio::sync::Notify;

const SHARDS: usize = 16;

/// What makes two calls the same: a call with another fingerprint is another flight, and the
/// store tells it that the key is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlightId {
    pub(super) tenant: TenantId,
    pub(super) key: IdempotencyKey,
    pub(super) fingerprint: Fingerprint,
}

/// All flights under way.
pub(super) struct Flights {
    shards: [Mutex<HashMap<FlightId, Arc<Flight>>>; SHARDS],
    hasher: RandomState,
}

/// One flight. It lands with a record, or without one when its leader failed.
#[derive(Debug, Default)]
pub(super) struct Flight {
    landed: OnceLock<Option<Arc<Record>>>,
    signal: Notify,
}

/// A caller's part in a flight.
pub(super) enum Seat<'f> {
    /// It runs the command.
    Leader(Leader<'f>),
    /// It waits for the leader.
    Follower(Arc<Flight>),
}

impl Flights {
    pub(super) fn new() -> Self {
        Self { shards: Default::default(), hasher: RandomState::new() }
    }

    pub(super) fn board(&self, id: FlightId) -> Seat<'_> {
        match self.shard(&id).entry(id) {
            Entry::Occupied(flight) => Seat::Follower(Arc::clone(flight.get())),
            Entry::Vacant(place) => {
                let id = place.key().clone();
                let flight = Arc::clone(place.insert(Arc::default()));
                Seat::Leader(Leader { flights: self, id, flight })
            }
        }
    }

    fn shard(&self, id: &FlightId) -> MutexGuard<'_, HashMap<FlightId, Arc<Flight>>> {
        let shard = self.hasher.hash_one((id.tenant, &id.key)) % SHARDS as u64;
        let [first, ..] = &self.shards;
        let shard = usize::try_from(shard).ok().and_then(|shard| self.shards.get(shard));
        shard.unwrap_or(first).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Waits for the landing.
    pub(super) async fn landing(&self) -> Option<Arc<Record>> {
        let signal = self.signal.notified();
        tokio::pin!(signal);
        // Invariant: listening starts before looking, so a landing in between is not missed.
        signal.as_mut().enable();
        if self.landed.get().is_none() {
            signal.await;
        }
        self.landed.get().cloned().flatten()
    }
}

/// Whoever runs the command. Dropping it (an error, a panic, a caller gone) lands the flight
/// without a record, and one follower runs.
pub(super) struct Leader<'f> {
    flights: &'f Flights,
    id: FlightId,
    flight: Arc<Flight>,
}

impl Leader<'_> {
    pub(super) fn land(self, record: Arc<Record>) {
        // A flight lands once; the drop that follows finds it landed.
        let _ = self.flight.landed.set(Some(record));
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.flights.shard(&self.id).remove(&self.id);
        let _ = self.flight.landed.set(None);
        self.flight.signal.notify_waiters();
    }
}
