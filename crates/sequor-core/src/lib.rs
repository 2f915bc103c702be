//! The words of sequor, its pure decisions, and the ports that stores implement.
//!
//! *For:* everything that is true without a runtime: tenants, keys, fingerprints, aggregates,
//! deciders, what a commit consists of, and whether it may become true.
//! *Never:* a clock, a runtime, SQL or HTTP; those are handed in or live behind a port.
//! *Start here:* [`commit`] says what must become true together, [`ports`] who makes it so.

pub mod canonical;
pub mod names;

pub mod key;
pub mod meta;
pub mod stream;
pub mod tenant;

pub mod aggregate;
pub mod command;
pub mod decider;
pub mod event;
pub mod fingerprint;
pub mod unique;

pub mod admission;
pub mod commit;
pub mod limits;
pub mod receipt;
pub mod record;

pub mod audit;
pub mod checkpoint;
pub mod error;
pub mod leases;
pub mod ports;
pub mod projection;

pub use aggregate::{Aggregate, fold};
pub use canonical::Json;
pub use command::{Command, Target, Validate};
pub use commit::{Commit, NewEvent, StreamWrite};
pub use decider::{Decider, Decision};
pub use error::{ErrReplay, Error, Invalid, Rejection, StoreError};
pub use event::{DecodeError, Event, EventName, Evolution, EvolutionError, StoredEvent};
pub use fingerprint::Fingerprint;
pub use key::IdempotencyKey;
pub use limits::Limits;
pub use meta::{Actor, CommandId, CommandMeta, CorrelationId, Meta, Timestamp};
pub use names::Name;
pub use projection::{Projection, ProjectionError, Projections, Wants};
pub use receipt::{Disposition, Receipt};
pub use record::{Record, RecordState, StreamVersion};
pub use stream::{AggregateId, Epoch, Partition, Position, StreamId, Version};
pub use tenant::TenantId;
pub use unique::{UniqueChange, UniqueKey};
