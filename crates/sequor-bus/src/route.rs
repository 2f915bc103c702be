//! From a command's name to what handles it.

mod decider;
mod handler;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sequor_core::ports::Store;
use sequor_core::{Command, Invalid, Json, StreamId};

pub(crate) use decider::DeciderRoute;
pub use handler::Handler;
pub(crate) use handler::{HandlerRoute, ServiceId, refuse_inside};

use crate::envelope::Envelope;
use crate::error::Halt;
use crate::repo::Repo;

/// What handles a command, without its types.
#[async_trait]
pub(crate) trait Route<S: Store>: Send + Sync {
    /// The aggregate that decides a command; `None` for a handler, which works in an open
    /// transaction.
    fn decided_by(&self, envelope: &Envelope) -> Result<Option<StreamId>, Invalid>;

    /// Decides or handles the command in a unit of work, and gives its output.
    async fn run(&self, envelope: &Envelope, repo: &mut Repo<S>) -> Result<Json, Halt>;
}

/// A command's output as it is stored. One that does not read back is refused while nothing is
/// written, since neither this caller nor a later replay could have it.
fn encode_output<C: Command>(output: &C::Output) -> Result<Json, Invalid> {
    let json = Json::of(output)?;
    let readable = json.read::<C::Output>();
    readable.map_err(|reason| Invalid::not_readable("output", reason))?;
    Ok(json)
}

/// All routes of a service.
pub(crate) struct Routes<S: Store>(pub(crate) HashMap<&'static str, Arc<dyn Route<S>>>);

impl<S: Store> Routes<S> {
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<dyn Route<S>>, Invalid> {
        self.0.get(name).ok_or_else(|| Invalid::NoHandler { name: name.to_owned() })
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.0.keys().copied().collect();
        names.sort_unstable();
        names
    }
}

impl<S: Store> fmt::Debug for Routes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names().fmt(f)
    }
}
