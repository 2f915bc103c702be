//! What a tenant can see, and how two stores are compared that gave other ids to the same.

use std::collections::HashMap;
use std::fmt::Write as _;

use sequor::ports::{ReadLog, Store};
use sequor::{Epoch, Position, TenantId};
use uuid::Uuid;

use super::mix::Rows;
use super::steps::KEYS;
use crate::bank::{Bank, key};
use crate::home::Home;
use crate::watched::Watched;

/// How a tenant looks at a store.
pub(super) struct Sight<H: Rows> {
    pub(super) tenant: TenantId,
    pub(super) names: Names,
    store: Watched<H>,
    /// How far it has read the log.
    after: Position,
}

impl<H: Rows> Sight<H> {
    pub(super) fn new(store: &Watched<H>, tenant: TenantId) -> Self {
        let (store, after) = (store.clone(), Position::START);
        Self { tenant, names: Names::default(), store, after }
    }

    /// The outcome under each key, the tenant's own rows, and what is new in the log. Readers of
    /// the log see all tenants of a partition; whose an event is, it says itself.
    pub(super) async fn look(&mut self, bank: &Bank<H>) -> String {
        let mut seen = String::new();
        for name in KEYS {
            let record = bank.outcome(self.tenant, &key(name)).await.unwrap();
            writeln!(seen, "\n{name}: {record:?}").unwrap();
        }
        let sum = Home::sum(&self.store.inner, self.tenant).await;
        writeln!(seen, "sum: cents {sum}").unwrap();
        let partition = self.store.partition(self.tenant);
        loop {
            let page = self.store.read_after(partition, self.after, 20).await.unwrap();
            let Some(last) = page.last() else { return seen };
            self.after = last.position;
            for event in page.iter().filter(|event| event.stream.tenant == self.tenant) {
                writeln!(seen, "event: {event:?}").unwrap();
            }
        }
    }
}

/// Numbers for ids and positions, in the order in which they came up.
#[derive(Default)]
pub(super) struct Names {
    ids: HashMap<Uuid, usize>,
    positions: HashMap<String, usize>,
}

impl Names {
    /// The text with numbers in place of ids and positions.
    pub(super) fn plain(&mut self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        let mut before = "";
        for piece in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let behind = &piece[word.len()..];
            let id = Uuid::parse_str(word).ok().filter(|_| word.len() == 36);
            match id {
                Some(id) => {
                    let next = self.ids.len();
                    let number = self.ids.entry(id).or_insert(next);
                    write!(plain, "#{number}{behind}").unwrap();
                }
                None if before == "Position(" => {
                    let next = self.positions.len();
                    let number = self.positions.entry(word.to_owned()).or_insert(next);
                    write!(plain, "@{number}{behind}").unwrap();
                }
                None => plain.push_str(piece),
            }
            before = piece;
        }
        plain
    }

    /// What both have seen, but for the store's own name.
    pub(super) fn shared_with(&self, other: &Self, Epoch(epoch): Epoch) -> Vec<Uuid> {
        let shared = self.ids.keys().filter(|id| other.ids.contains_key(id) && **id != epoch);
        shared.copied().collect()
    }
}
