//! Second station: has it been done?

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sequor_core::{Disposition, Error, Invalid, Record};
use tokio::time::{Instant, timeout_at};

use super::flight::{FlightId, Flights, Seat};
use super::replay::Judge;
use super::{Middleware, Next};
use crate::envelope::Envelope;
use crate::error::waits_for_the_key;
use crate::reply::Reply;

/// How long a duplicate that has waited in vain is told to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The station. A command without a key passes it untouched.
///
/// The claim itself is made where the command is made true. Where everything behind this station
/// is pure, the command runs speculatively: whatever it decides is thrown away when the store
/// knows the key, and a refusal is reported only after the key was looked up. So the caller sees
/// what it would see if the key had been asked first, at the price of one trip less.
pub(crate) struct Idempotent {
    flights: Flights,
    judge: Judge,
    /// Whether all that stands behind is pure.
    speculate: bool,
}

impl Idempotent {
    pub(crate) fn new(judge: Judge, speculate: bool) -> Self {
        Self { flights: Flights::new(), judge, speculate }
    }
}

#[async_trait]
impl Middleware for Idempotent {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        let Some(id) = flight_id(envelope)? else {
            return next.run(envelope).await;
        };
        envelope.pin(id.tenant, id.key.clone());
        if envelope.shared {
            let reply = self.claim(envelope, next).await?;
            return self.answer(reply, envelope).await;
        }
        let deadline = Instant::now() + self.judge.settings.wait_max;
        loop {
            match self.flights.board(id.clone()) {
                Seat::Leader(leader) => {
                    let reply = self.claim(envelope, next).await?;
                    leader.land(Arc::clone(reply.record()));
                    return self.answer(reply, envelope).await;
                }
                Seat::Follower(flight) => {
                    let landing = timeout_at(deadline, flight.landing()).await;
                    let record =
                        landing.map_err(|_| Error::InProgress { retry_after: RETRY_AFTER })?;
                    if let Some(record) = record {
                        return self.answer(Reply::replayed(record), envelope).await;
                    }
                }
            }
        }
    }
}

impl Idempotent {
    /// Runs the command, unless its key is known; then the record answers.
    async fn claim(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        let end = next.end();
        // A shared transaction that refused a command may be unable to tell afterwards.
        let speculate = self.speculate && !envelope.shared;
        if !speculate && let Some(record) = end.record(envelope).await? {
            return Ok(replayed(record));
        }
        match next.run(envelope).await {
            Err(refusal) if speculate && waits_for_the_key(&refusal) => {
                end.record(envelope).await?.map(replayed).ok_or(refusal)
            }
            reply => reply,
        }
    }

    async fn answer(&self, reply: Reply, envelope: &Envelope) -> Result<Reply, Error> {
        if reply.disposition() != Disposition::Replayed {
            return Ok(reply);
        }
        self.judge.answer(reply, envelope).await
    }
}

fn replayed(record: Record) -> Reply {
    Reply::replayed(Arc::new(record))
}

fn flight_id(envelope: &Envelope) -> Result<Option<FlightId>, Invalid> {
    let Some(key) = envelope.meta.key.clone() else {
        return Ok(None);
    };
    let (tenant, fingerprint) = (envelope.tenant()?, envelope.fingerprint()?);
    Ok(Some(FlightId { tenant, key, fingerprint }))
}

/// Stands in the station's place where idempotency is switched off.
pub(crate) struct KeyRefused;

#[async_trait]
impl Middleware for KeyRefused {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        if envelope.meta.key.is_some() {
            return Err(Invalid::KeyWithoutIdempotency.into());
        }
        next.run(envelope).await
    }
}
