//! Which tenant is where, and the lock under which a partition's positions are drawn.

use std::num::NonZeroU16;

use sequor_core::{Partition, StoreError, TenantId};

use crate::connection::Session;
use crate::error::{corrupt, store_error};
use crate::row;

/// The partitions of a store, as they were when it was created.
#[derive(Clone, Debug)]
pub(crate) struct Partitions {
    count: NonZeroU16,
    /// By number.
    lock_keys: Vec<i64>,
}

/// A partition, with the key of its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartitionLock {
    pub(crate) partition: Partition,
    pub(crate) key: i64,
}

impl Partitions {
    /// Reads them.
    pub(crate) async fn read(session: &mut Session, count: NonZeroU16) -> Result<Self, StoreError> {
        let read = session.statement(include_str!("sql/read_partitions.sql"));
        let row = read.fetch_one(&mut session.postgres).await.map_err(store_error)?;
        let lock_keys = row::lock_keys(&row)?;
        if lock_keys.len() != usize::from(count.get()) {
            return Err(corrupt(format!("{} of {count} partitions are there", lock_keys.len())));
        }
        Ok(Self { count, lock_keys })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Partition> {
        Partition::all(self.count)
    }

    pub(crate) fn contains(&self, partition: Partition) -> bool {
        partition.get() < self.count.get()
    }

    pub(crate) fn of(&self, tenant: TenantId) -> Partition {
        Partition::of(tenant, self.count)
    }

    pub(crate) fn lock_of(&self, tenant: TenantId) -> PartitionLock {
        let partition = self.of(tenant);
        // Invariant: there is a key for each, see `read`.
        let key = self.lock_keys.get(usize::from(partition.get())).copied().unwrap_or_default();
        PartitionLock { partition, key }
    }
}
