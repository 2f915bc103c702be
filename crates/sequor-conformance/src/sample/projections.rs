//! Inline projections that count, fail, watch and wait, on any store.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sequor_core::{Projection, ProjectionError, StoredEvent};
use tokio::sync::Semaphore;

use super::{DOOMED, PANICKING};
use crate::harness::{Connection, Harness};

/// Counts each event for its tenant; then fails on `DOOMED` and panics on `PANICKING`.
pub(crate) struct Fragile<H>(pub(crate) Arc<H>);

#[async_trait]
impl<H: Harness> Projection<Connection<H>> for Fragile<H> {
    fn name(&self) -> &str {
        "fragile"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut Connection<H>,
    ) -> Result<(), ProjectionError> {
        self.0.add(connection, event.stream.tenant, 1).await?;
        assert_ne!(event.name.as_str(), PANICKING.name, "as ordered");
        if event.name.as_str() == DOOMED.name {
            return Err("as ordered".into());
        }
        Ok(())
    }
}

/// Remembers each event that it was shown.
#[derive(Default)]
pub(crate) struct Watching(Mutex<Vec<StoredEvent>>);

impl Watching {
    pub(crate) fn seen(&self) -> Vec<StoredEvent> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl<C: ?Sized + Send + 'static> Projection<C> for Watching {
    fn name(&self) -> &str {
        "watching"
    }

    async fn project(&self, event: &StoredEvent, _: &mut C) -> Result<(), ProjectionError> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}

/// Says that it has begun, and waits until it may go on.
pub(crate) struct Waiting {
    pub(crate) begun: Semaphore,
    pub(crate) go_on: Semaphore,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self { begun: Semaphore::new(0), go_on: Semaphore::new(0) }
    }
}

#[async_trait]
impl<C: ?Sized + Send + 'static> Projection<C> for Waiting {
    fn name(&self) -> &str {
        "waiting"
    }

    async fn project(&self, _: &StoredEvent, _: &mut C) -> Result<(), ProjectionError> {
        self.begun.add_permits(1);
        let _permit = self.go_on.acquire().await?;
        Ok(())
    }
}
