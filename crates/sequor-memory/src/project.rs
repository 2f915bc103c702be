//! Projections, run so that a panic in one becomes an error.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use sequor_core::{Projection, Projections, StoreError, StoredEvent};

use crate::tables::Tables;

/// Shows the events of a command to each inline projection that wants them.
pub(crate) async fn project_inline(
    projections: &Projections<Tables>,
    events: &[std::sync::Arc<StoredEvent>],
    tables: &mut Tables,
) -> Result<(), StoreError> {
    for projection in projections.0.iter() {
        let wants = projection.wants();
        let wanted = events.iter().map(|event| &**event).filter(|event| wants.include(event));
        project(projection.as_ref(), &wanted.collect::<Vec<_>>(), tables).await?;
    }
    Ok(())
}

/// Shows events of one tenant to a projection.
pub(crate) async fn project(
    projection: &dyn Projection<Tables>,
    events: &[&StoredEvent],
    tables: &mut Tables,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    // Unwind safety: after a panic the tables are thrown away. Its error speaks inside as well.
    let run = async {
        let projected = projection.project_all(events, tables).await;
        projected.map_err(|error| error.to_string())
    };
    let how = match AssertUnwindSafe(run).catch_unwind().await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => format!("failed: {error}"),
        Err(_) => "panicked".to_owned(),
    };
    Err(StoreError::Corrupt { what: format!("projection `{}` {how}", projection.name()) })
}
