//! What the bus needs from the world, one to three methods each.

pub mod audit;
pub mod authorize;
pub mod checkpoint;
pub mod clock;
pub mod commit;
pub mod history;
pub mod lease;
pub mod log;
pub mod transaction;
pub mod wake;

pub use audit::Audit;
pub use authorize::Denied;
pub use checkpoint::{KeepCheckpoints, Step};
pub use clock::{Clock, Ids};
pub use commit::{CommitCommand, Committed, Submitted};
pub use history::{History, HistoryRequest, ReadHistory};
pub use lease::KeepLeases;
pub use log::ReadLog;
pub use transaction::{Transact, Transaction};
pub use wake::{Listen, Listeners, Wake};

use crate::stream::{Epoch, Partition};
use crate::tenant::TenantId;

/// A store: all ports that a command needs, over one database.
pub trait Store: ReadHistory + CommitCommand + Transact + ReadLog {
    /// Names this life of the store; receipts carry it.
    fn epoch(&self) -> Epoch;

    /// Where a tenant's events are: the partition by which its log is read.
    fn partition(&self, tenant: TenantId) -> Partition;
}

/// A store whose log can be followed: all ports that projections need beside those of commands.
pub trait Follow:
    Store + KeepLeases + KeepCheckpoints<Step: Step<Connection = <Self as Transact>::Connection>> + Wake
{
    /// The partitions that there are.
    fn partitions(&self) -> Vec<Partition>;
}
