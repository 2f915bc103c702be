//! Inline projections, run so that a panic in one becomes an error of the command.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use sequor_core::{InlineProjection, ProjectionError, Projections, StoreError, StoredEvent};
use sqlx::PgConnection;
use tokio::time::timeout;

use crate::connection::Deadlocks;
use crate::error::{corrupt, projection_error};

/// How long a projection may take for one event: everybody who writes waits for it.
const RUN_MAX: Duration = Duration::from_secs(10);

/// Shows events, in position order, to every projection.
pub(crate) async fn project(
    events: &[StoredEvent],
    projections: &Projections<PgConnection>,
    connection: &mut PgConnection,
) -> Result<(), StoreError> {
    for event in events {
        for projection in projections.0.iter() {
            // Unwind safety: after a panic the transaction is rolled back, and with it whatever
            // the projection left half done.
            let run = async { projection.project(event, &mut *connection).await };
            let name = projection.name();
            match timeout(RUN_MAX, AssertUnwindSafe(run).catch_unwind()).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => return Err(projection_error(name, error)),
                Ok(Err(_)) => return Err(corrupt(format!("projection `{name}` panicked"))),
                Err(_) => {
                    return Err(corrupt(format!("projection `{name}` took more than {RUN_MAX:?}")));
                }
            }
        }
    }
    Ok(())
}

/// Projections whose deadlocks are counted.
pub(crate) fn counted(
    projections: &Projections<PgConnection>,
    deadlocks: &Deadlocks,
) -> Projections<PgConnection> {
    let count = |projection: &Arc<_>| {
        let (projection, deadlocks) = (Arc::clone(projection), deadlocks.clone());
        Arc::new(Counted { projection, deadlocks }) as _
    };
    Projections(projections.0.iter().map(count).collect())
}

struct Counted {
    projection: Arc<dyn InlineProjection<PgConnection>>,
    deadlocks: Deadlocks,
}

#[async_trait]
impl InlineProjection<PgConnection> for Counted {
    fn name(&self) -> &str {
        self.projection.name()
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        let projected = self.projection.project(event, connection).await;
        if let Some(error) = projected.as_ref().err().and_then(|error| error.downcast_ref()) {
            self.deadlocks.note(error);
        }
        projected
    }
}
