//! What a known key answers.

use std::sync::Arc;
use std::time::Duration;

use sequor_core::ports::Clock;
use sequor_core::{ErrReplay, Error, Record, RecordState, Timestamp};

use super::authorize::{Authorize, ask};
use crate::envelope::Envelope;
use crate::idempotency::{Idempotency, Mode, OnReuse, ReplayAccess};
use crate::reply::Reply;

/// Judges whether and how a record answers a request.
pub(crate) struct Judge {
    pub(crate) settings: Idempotency,
    pub(crate) authorize: Arc<dyn Authorize>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Judge {
    /// Answers with the record under the request's key.
    pub(super) async fn answer(&self, reply: Reply, envelope: &Envelope) -> Result<Reply, Error> {
        let record = Arc::clone(reply.record());
        let may_see_output = self.may_see_output(&record, envelope).await?;
        if let RecordState::Reserved { lease_until, .. } = record.state {
            return Err(Error::InProgress { retry_after: until(lease_until, self.clock.now()) });
        }
        if !is_same_request(&record, envelope)? {
            return match self.settings.on_reuse {
                OnReuse::Refuse => Err(key_reused(&record)),
                OnReuse::NoOp => Ok(reply),
            };
        }
        if record.state == RecordState::Expired {
            return Err(Error::KeyExpired { command_id: record.command_id });
        }
        match envelope.options.mode.unwrap_or(self.settings.mode) {
            Mode::Strict => Err(replay(&record)),
            Mode::Output if may_see_output => Ok(reply.with_output()),
            Mode::Output | Mode::NoOp => Ok(reply),
        }
    }

    /// Whether the caller may have the output; an error when it may not even know.
    async fn may_see_output(&self, record: &Record, envelope: &Envelope) -> Result<bool, Error> {
        let same_actor = record.actor == envelope.meta.actor;
        match self.settings.access {
            ReplayAccess::Trust => Ok(true),
            ReplayAccess::SameActor if same_actor => Ok(true),
            ReplayAccess::SameActor => ask(&*self.authorize, envelope).await.map(|()| false),
            ReplayAccess::Reauthorize => ask(&*self.authorize, envelope).await.map(|()| true),
        }
    }
}

fn is_same_request(record: &Record, envelope: &Envelope) -> Result<bool, Error> {
    let same_name = record.command_name.as_str() == envelope.name();
    Ok(same_name && record.fingerprint == Some(envelope.fingerprint()?))
}

fn key_reused(record: &Record) -> Error {
    Error::KeyReused { command_id: record.command_id, command_name: record.command_name.clone() }
}

fn replay(record: &Record) -> Error {
    Error::Replay(ErrReplay {
        command_id: record.command_id,
        command_name: record.command_name.clone(),
        recorded_at: record.recorded_at,
    })
}

fn until(lease: Timestamp, now: Timestamp) -> Duration {
    let micros = lease.as_micros().saturating_sub(now.as_micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
