//! What handlers and inline projections write their own rows to.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The connection of the memory store: your own structs, one of each type.
///
/// Changes are part of the command's transaction: they become visible with its events or not at
/// all. A transaction copies a struct when it first changes it, so that large ones are best kept
/// cheap to clone.
///
/// ```
/// use std::collections::BTreeMap;
/// use sequor_memory::Tables;
///
/// #[derive(Clone, Default)]
/// struct Balances(BTreeMap<String, i64>);
///
/// let mut tables = Tables::default();
/// *tables.get_mut::<Balances>().0.entry("a".into()).or_default() += 5;
/// assert_eq!(tables.get::<Balances>().unwrap().0["a"], 5);
/// ```
#[derive(Clone, Default)]
pub struct Tables {
    of_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl Tables {
    /// The struct of this type, if one was ever changed.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.of_type.get(&TypeId::of::<T>()).and_then(|table| table.downcast_ref())
    }

    /// The struct of this type, to be changed; at first its default.
    ///
    /// # Panics
    /// Never: what is kept under a type is of that type, and nobody else holds a fresh copy.
    pub fn get_mut<T: Default + Clone + Send + Sync + 'static>(&mut self) -> &mut T {
        let table = self.of_type.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        if Arc::get_mut(table).is_none() {
            let copy = table.downcast_ref::<T>().cloned().unwrap_or_default();
            *table = Arc::new(copy);
        }
        Arc::get_mut(table)
            .and_then(|table| table.downcast_mut())
            .expect("a fresh copy of the type")
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("types", &self.of_type.len()).finish_non_exhaustive()
    }
}
