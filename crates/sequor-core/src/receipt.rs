//! What a caller gets for a command that has taken effect.

use crate::meta::{CommandId, Timestamp};
use crate::names::Name;
use crate::record::StreamVersion;
use crate::stream::{Epoch, Position};

/// What a caller gets for a command that has taken effect, now or before.
///
/// It names the command that took effect (on a replay the original one), so that a caller can
/// query a projection for the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt<O> {
    /// Whether it ran now.
    pub disposition: Disposition,
    /// The command that took effect.
    pub command_id: CommandId,
    /// Its stable name.
    pub command_name: Name,
    /// When it was taken in.
    pub recorded_at: Timestamp,
    /// The aggregates that it wrote or read, with their versions right after it.
    pub streams: Vec<StreamVersion>,
    /// The position of its last event; `None` without events, and then there is nothing to wait
    /// for.
    pub position: Option<Position>,
    /// The life of the store that `position` belongs to.
    pub epoch: Epoch,
    /// The typed output: always after an execution; on a replay in `Output` mode, as far as the
    /// actor may see it.
    pub output: Option<O>,
}

/// Whether a command ran now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Disposition {
    /// It took effect now.
    Executed,
    /// It had taken effect before; nothing was done now.
    Replayed,
    /// It is kept and will take effect later.
    Deferred,
}

impl<O> Receipt<O> {
    /// Whether it took effect now.
    #[must_use]
    pub fn is_executed(&self) -> bool {
        self.disposition == Disposition::Executed
    }

    /// Whether it had taken effect before.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.disposition == Disposition::Replayed
    }

    /// The same receipt with another output.
    pub fn map<P>(self, map: impl FnOnce(O) -> P) -> Receipt<P> {
        Receipt {
            disposition: self.disposition,
            command_id: self.command_id,
            command_name: self.command_name,
            recorded_at: self.recorded_at,
            streams: self.streams,
            position: self.position,
            epoch: self.epoch,
            output: self.output.map(map),
        }
    }
}
