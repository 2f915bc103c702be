//! Where events live: streams with versions, partitions with positions.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::Invalid;
use crate::names::{Name, is_short_text};
use crate::tenant::TenantId;

/// Names one aggregate within its kind: 1 to 255 bytes of text without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggregateId(Arc<str>);

impl AggregateId {
    /// Takes anything that prints as an id: a UUID, a number, a text.
    ///
    /// # Errors
    /// [`Invalid::AggregateId`] when it is empty, longer than 255 bytes, or holds a control
    /// character.
    pub fn new(id: impl fmt::Display) -> Result<Self, Invalid> {
        let text = id.to_string();
        if is_short_text(&text) {
            return Ok(Self(text.into()));
        }
        Err(Invalid::AggregateId)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One aggregate's events: (tenant, aggregate name, aggregate id). Ordered, so that locks can be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// Whose it is.
    pub tenant: TenantId,
    /// The aggregate's stable name.
    pub aggregate: Name,
    /// Which one of its kind.
    pub id: AggregateId,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.aggregate, self.id)
    }
}

/// How many events a stream has: its last event's version. Versions run 1, 2, 3 … without holes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Version(u64);

impl Version {
    /// A stream without events.
    pub const NONE: Self = Self(0);

    /// The version after `events` events.
    #[must_use]
    pub const fn new(events: u64) -> Self {
        Self(events)
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The version of the next event.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Orders the events of a partition. Positions grow, may have holes, and are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(u64);

impl Position {
    /// Before the first event; a reader starts after it.
    pub const START: Self = Self(0);

    /// The position with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The unit of ordered reading. A tenant belongs to one partition for the life of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(u16);

impl Partition {
    /// The only partition of a store that has one (SQLite, memory).
    pub const ONLY: Self = Self(0);

    /// The partition of a tenant among `count`: the first eight bytes of
    /// SHA-256("sequor:partition:1:" ++ the tenant's 16 bytes), big-endian, modulo `count`.
    /// Specified, so that every program and every release agrees.
    #[must_use]
    pub fn of(tenant: TenantId, count: std::num::NonZeroU16) -> Self {
        let digest = Sha256::new()
            .chain_update(b"sequor:partition:1:")
            .chain_update(tenant.as_uuid().as_bytes())
            .finalize();
        let head = digest.iter().take(8).fold(0_u64, |head, byte| (head << 8) | u64::from(*byte));
        Self(u16::try_from(head % u64::from(count.get())).unwrap_or_default())
    }

    /// The partition with this number, from 0.
    #[must_use]
    pub const fn numbered(number: u16) -> Self {
        Self(number)
    }

    /// All of `count` partitions.
    pub fn all(count: std::num::NonZeroU16) -> impl Iterator<Item = Self> {
        (0..count.get()).map(Self)
    }

    /// As a number, from 0.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Names one life of a store. Positions of different epochs do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub Uuid);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_hash_never_changes() {
        let count = std::num::NonZeroU16::new(16).unwrap();
        let partitions: Vec<u16> = (1..=4_u128)
            .map(|id| Partition::of(TenantId::new(Uuid::from_u128(id)).unwrap(), count).get())
            .collect();
        assert_eq!(partitions, [10, 14, 3, 5]);
    }
}
