//! Makes conflicts visible: counts the events that the bus traces when it tries again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// The conflicts that the bus met and tried again, in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conflicts(Arc<AtomicU64>);

impl Conflicts {
    /// Starts to listen, once a process.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let conflicts = Self::default();
        tracing::subscriber::set_global_default(Listener(conflicts.clone()))?;
        Ok(conflicts)
    }

    /// How many there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Listens to one event of the bus, which says `conflict`, and to nothing else.
struct Listener(Conflicts);

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("sequor_bus")
    }

    fn event(&self, event: &Event<'_>) {
        let mut says = SaysConflict(false);
        event.record(&mut says);
        if says.0 {
            self.0.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Whether an event's message is `conflict`.
struct SaysConflict(bool);

impl Visit for SaysConflict {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}") == "conflict";
        }
    }
}
