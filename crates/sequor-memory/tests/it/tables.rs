//! Structs of one's own as the rows of a transaction.

use sequor_core::ports::{Transact, Transaction};
use sequor_memory::MemoryStore;

use crate::tenant;

#[derive(Clone, Debug, Default, PartialEq)]
struct Balances(Vec<i64>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Names(Vec<String>);

async fn deposit(store: &MemoryStore, amount: i64) {
    let mut transaction = store.begin(tenant()).await.unwrap();
    transaction.connection().get_mut::<Balances>().0.push(amount);
    transaction.commit().await.unwrap();
}

fn balances(store: &MemoryStore) -> Option<Vec<i64>> {
    store.read(|tables| tables.get::<Balances>().map(|balances| balances.0.clone()))
}

#[tokio::test]
async fn a_struct_appears_when_it_is_first_changed() {
    let store = MemoryStore::new();
    assert_eq!(balances(&store), None);
    deposit(&store, 5).await;
    assert_eq!(balances(&store), Some(vec![5]));
    assert!(store.read(|tables| tables.get::<Names>().is_none()));
}

#[tokio::test]
async fn structs_of_different_types_do_not_meet() {
    let store = MemoryStore::new();
    let mut transaction = store.begin(tenant()).await.unwrap();
    let tables = transaction.connection();
    tables.get_mut::<Balances>().0.push(5);
    tables.get_mut::<Names>().0.push("ada".to_owned());
    tables.get_mut::<Balances>().0.push(6);
    transaction.commit().await.unwrap();
    assert_eq!(balances(&store), Some(vec![5, 6]));
    let names = store.read(|tables| tables.get::<Names>().cloned());
    assert_eq!(names, Some(Names(vec!["ada".to_owned()])));
}

#[tokio::test]
async fn a_transaction_sees_its_own_changes_and_others_do_not() {
    let store = MemoryStore::new();
    deposit(&store, 5).await;
    let mut transaction = store.begin(tenant()).await.unwrap();
    transaction.connection().get_mut::<Balances>().0.push(6);
    let own = transaction.connection().get::<Balances>().cloned();
    assert_eq!(own, Some(Balances(vec![5, 6])));
    assert_eq!(balances(&store), Some(vec![5]));
    drop(transaction);
    assert_eq!(balances(&store), Some(vec![5]), "a dropped transaction leaves no trace");
}

#[tokio::test]
async fn a_reader_keeps_what_it_looks_at() {
    let store = MemoryStore::new();
    deposit(&store, 5).await;
    let seen = store.read(Clone::clone);
    deposit(&store, 6).await;
    assert_eq!(seen.get::<Balances>(), Some(&Balances(vec![5])));
    assert_eq!(balances(&store), Some(vec![5, 6]));
}
