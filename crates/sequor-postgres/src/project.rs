//! Inline projections, run so that a panic in one becomes an error of the command.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use sequor_core::{Projections, StoreError, StoredEvent};
use sqlx::PgConnection;
use tokio::time::timeout;

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
