//! Inline projections, run so that a panic in one becomes an error of the command.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use sequor_core::{Projections, StoreError, StoredEvent};
use sqlx::SqliteConnection;

use crate::error::{corrupt, projection_error};

/// Shows events, in position order, to every projection.
pub(crate) async fn project(
    events: &[StoredEvent],
    projections: &Projections<SqliteConnection>,
    connection: &mut SqliteConnection,
) -> Result<(), StoreError> {
    for event in events {
        for projection in projections.0.iter() {
            // Unwind safety: after a panic the transaction is rolled back, and with it whatever
            // the projection left half done.
            let run = async { projection.project(event, &mut *connection).await };
            match AssertUnwindSafe(run).catch_unwind().await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(projection_error(projection.name(), error)),
                Err(_) => {
                    return Err(corrupt(format!("projection `{}` panicked", projection.name())));
                }
            }
        }
    }
    Ok(())
}
