//! A harness, and one line.

use std::collections::HashMap;

use async_trait::async_trait;
use sequor_conformance::{Abilities, Harness, Tally};
use sequor_core::{ProjectionError, TenantId};
use sequor_memory::{MemoryStore, Tables};

sequor_conformance::conformance!(Memory);

struct Memory;

#[derive(Clone, Default)]
struct Tallies(HashMap<TenantId, Tally>);

#[async_trait]
impl Harness for Memory {
    type Store = MemoryStore;

    fn abilities(&self) -> Abilities {
        Abilities::none().one_writer()
    }

    async fn fresh(&self) -> MemoryStore {
        MemoryStore::new()
    }

    async fn reopen(&self, store: MemoryStore) -> MemoryStore {
        store
    }

    async fn add(
        &self,
        tables: &mut Tables,
        tenant: TenantId,
        amount: i64,
    ) -> Result<(), ProjectionError> {
        let tally = tables.get_mut::<Tallies>().0.entry(tenant).or_default();
        tally.count += 1;
        tally.sum += amount;
        Ok(())
    }

    async fn tally(&self, store: &MemoryStore, tenant: TenantId) -> Tally {
        let of = |tables: &Tables| tables.get::<Tallies>()?.0.get(&tenant).copied();
        store.read(of).unwrap_or_default()
    }
}
