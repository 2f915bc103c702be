//! Projections, run so that a panic in one becomes an error.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use sequor_core::{Projection, Projections, StoreError, StoredEvent};
use sqlx::SqliteConnection;
use tokio::time::{Instant, timeout_at};

use crate::error::{corrupt, projection_error};

/// How long the projections of a commit, or of a step, may take: everybody who writes waits for them.
pub(crate) const RUN_MAX: Duration = Duration::from_secs(10);

/// Shows the events of a command to each inline projection that wants them.
pub(crate) async fn project_inline(
    events: &[StoredEvent],
    projections: &Projections<SqliteConnection>,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    let deadline = Instant::now() + RUN_MAX;
    for projection in projections.0.iter() {
        let wants = projection.wants();
        let wanted: Vec<_> = events.iter().filter(|event| wants.include(event)).collect();
        project(projection.as_ref(), &wanted, deadline, connection).await?;
    }
    Ok(())
}

/// Shows events of one tenant, in the order of their positions, to a projection.
pub(crate) async fn project(
    projection: &dyn Projection<SqliteConnection>,
    events: &[&StoredEvent],
    deadline: Instant,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let name = projection.name();
    // Unwind safety: after a panic the transaction is rolled back, and with it whatever the
    // projection left half done. Its error speaks inside as well, for that is its code too.
    let run = async {
        let projected = projection.project_all(events, connection).await;
        projected.map_err(|error| projection_error(name, error))
    };
    match timeout_at(deadline, AssertUnwindSafe(run).catch_unwind()).await {
        Ok(Ok(projected)) => projected,
        Ok(Err(_)) => Err(corrupt(format!("projection `{name}` panicked"))),
        Err(_) => Err(corrupt(format!("projection `{name}` took more than {RUN_MAX:?}"))),
    }
}
