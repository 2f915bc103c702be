//! Proving that what is stored is whole.

use async_trait::async_trait;

use crate::audit::{AuditReport, AuditSettings};
use crate::error::StoreError;

/// Looks at everything that is stored, and says exactly what is wrong with it.
///
/// What holds in a store that has done what it promises, and is compared here over one snapshot:
///
/// * positions are unique in their partition, in the order of versions in each stream, and none is
///   above what was drawn; each event is in the partition of its tenant;
/// * the versions of a stream are 1, 2, 3 … without holes, up to the version that is stored for it;
/// * each event has its command, and each command remembers the position of its last event and the
///   versions that it made;
/// * each key has just one command, of its tenant, and each command with a key just one key: live,
///   archived, or in a month of the archive that was dropped;
/// * a claim does not outlive its transaction, and a reservation has its lease;
/// * a value is held by an aggregate that a command has touched, and an aggregate holds one value in
///   a scope;
/// * a message that waits has its command.
#[async_trait]
pub trait Audit: Send + Sync + 'static {
    /// Audits the store. Commands may run meanwhile: they neither wait nor show.
    ///
    /// Its price is a full scan of every table, several times, so it is for the end of a test, after
    /// a restore, or for a quiet hour; not for each start.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a check takes longer than it may, [`StoreError::Unavailable`]. What
    /// is wrong with the content is no error but a [`Finding`](crate::audit::Finding).
    ///
    /// # Cancellation
    /// Nothing is written, so nothing remains.
    async fn audit(&self, settings: AuditSettings) -> Result<AuditReport, StoreError>;
}
