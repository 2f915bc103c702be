//! Projections, run so that a panic in one becomes an error.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use sequor_core::{Projection, Projections, StoreError, StoredEvent};
use sqlx::PgConnection;
use tokio::time::timeout;

use crate::connection::Session;
use crate::error::{corrupt, projection_error};

/// How long a projection may take at a time: everybody who writes waits for it.
const RUN_MAX: Duration = Duration::from_secs(10);

/// Shows the events of a command to each inline projection that wants them.
pub(crate) async fn project_inline(
    events: &[StoredEvent],
    projections: &Projections<PgConnection>,
    session: &mut Session,
) -> Result<(), StoreError> {
    for projection in projections.0.iter() {
        let wants = projection.wants();
        let wanted: Vec<_> = events.iter().filter(|event| wants.include(event)).collect();
        project(projection.as_ref(), &wanted, session).await?;
    }
    Ok(())
}

/// Shows events of one tenant, in the order of their positions, to a projection.
pub(crate) async fn project(
    projection: &dyn Projection<PgConnection>,
    events: &[&StoredEvent],
    session: &mut Session,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    session.was_shared = true;
    // Unwind safety: after a panic the transaction is rolled back, and with it whatever the
    // projection left half done.
    let run = async { projection.project_all(events, &mut session.postgres).await };
    let name = projection.name();
    match timeout(RUN_MAX, AssertUnwindSafe(run).catch_unwind()).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => {
            if let Some(error) = error.downcast_ref() {
                session.deadlocks.note(error);
            }
            Err(projection_error(name, error))
        }
        Ok(Err(_)) => Err(corrupt(format!("projection `{name}` panicked"))),
        Err(_) => Err(corrupt(format!("projection `{name}` took more than {RUN_MAX:?}"))),
    }
}
