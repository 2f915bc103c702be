//! What the bus needs from the world, one to three methods each.

pub mod authorize;
pub mod clock;
pub mod commit;
pub mod history;
pub mod log;
pub mod transaction;

pub use authorize::Denied;
pub use clock::{Clock, Ids};
pub use commit::{CommitCommand, Committed, Submitted};
pub use history::{History, HistoryRequest, ReadHistory};
pub use log::ReadLog;
pub use transaction::{Transact, Transaction};

use crate::stream::{Epoch, Partition};
use crate::tenant::TenantId;

/// A store: all ports that a command needs, over one database.
pub trait Store: ReadHistory + CommitCommand + Transact + ReadLog {
    /// Names this life of the store; receipts carry it.
    fn epoch(&self) -> Epoch;

    /// Where a tenant's events are: the partition by which its log is read.
    fn partition(&self, tenant: TenantId) -> Partition;
}
