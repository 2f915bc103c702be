//! Unique keys: two phases, whatever the order, against a simple model.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sequor_core::admission::{Admission, Ledger, admit};
use sequor_core::commit::StreamDraft;
use sequor_core::{
    CommandId, IdempotencyKey, Limits, Name, Record, StoreError, StreamId, TenantId, UniqueChange,
    UniqueKey, Version,
};

use crate::commit::{draft, stream, tenant};

/// Who holds what; all streams are at version 0.
#[derive(Clone, Debug, Default, PartialEq)]
struct Held(BTreeMap<UniqueKey, StreamId>);

impl Ledger for Held {
    fn record(&self, _: TenantId, _: &IdempotencyKey) -> Option<&Record> {
        None
    }
    fn version(&self, _: &StreamId) -> Version {
        Version::NONE
    }
    fn maker(&self, _: &StreamId) -> Option<CommandId> {
        None
    }
    fn holder(&self, _: TenantId, unique: &UniqueKey) -> Option<&StreamId> {
        self.0.get(unique)
    }
    fn held(&self, stream: &StreamId) -> Vec<UniqueKey> {
        self.0.iter().filter(|(_, holder)| *holder == stream).map(|(key, _)| key.clone()).collect()
    }
}

fn key(scope: u8, value: u8) -> UniqueKey {
    UniqueKey::new(Name::new(format!("scope{scope}")).unwrap(), &format!("value{value}")).unwrap()
}

/// Applies changes through `admit`.
fn apply(held: &Held, changes: &[(u8, Vec<UniqueChange>)]) -> Result<Held, StoreError> {
    let part = |(id, unique): &(u8, Vec<UniqueChange>)| StreamDraft {
        stream: stream(tenant(1), &id.to_string()),
        expected: Version::NONE,
        after: None,
        unique: unique.clone(),
    };
    let draft = draft(tenant(1), changes.iter().map(part).collect());
    let commit = draft.check(&Limits::DEFAULT)?;
    let Admission::Fresh(writes) = admit(&commit, held)? else { panic!("no key was given") };
    let mut after = held.clone();
    for (holder, unique) in writes.releases {
        assert_eq!(after.0.remove(&unique), Some(holder), "only what is held is released");
    }
    for (holder, unique) in writes.claims {
        assert_eq!(after.0.insert(unique, holder), None, "only what is free is claimed");
    }
    Ok(after)
}

/// The same from the words of the design: everybody ends with what they last said, and two may not
/// end with the same.
fn model(held: &Held, changes: &[(u8, Vec<UniqueChange>)]) -> Option<Held> {
    let mut by_holder: BTreeMap<StreamId, BTreeMap<Name, UniqueKey>> = BTreeMap::new();
    for (unique, holder) in &held.0 {
        by_holder.entry(holder.clone()).or_default().insert(unique.scope.clone(), unique.clone());
    }
    for (id, changes) in changes {
        let own = by_holder.entry(stream(tenant(1), &id.to_string())).or_default();
        for change in changes {
            match change {
                UniqueChange::Hold(unique) => {
                    own.insert(unique.scope.clone(), unique.clone());
                }
                UniqueChange::Release(scope) => {
                    own.remove(scope);
                }
                UniqueChange::ReleaseAll => own.clear(),
            }
        }
    }
    let all: Vec<_> = by_holder
        .into_iter()
        .flat_map(|(holder, own)| own.into_values().map(move |unique| (unique, holder.clone())))
        .collect();
    let after = Held(all.iter().cloned().collect());
    (after.0.len() == all.len()).then_some(after)
}

fn any_change() -> impl Strategy<Value = UniqueChange> {
    prop_oneof![
        4 => (0_u8..2, 0_u8..4).prop_map(|(scope, value)| UniqueChange::Hold(key(scope, value))),
        1 => (0_u8..2).prop_map(|scope| UniqueChange::Release(key(scope, 0).scope)),
        1 => Just(UniqueChange::ReleaseAll),
    ]
}

proptest! {
    #[test]
    fn a_commit_of_unique_keys_does_what_the_model_does(
        commits in prop::collection::vec(
            prop::collection::btree_map(0_u8..4, prop::collection::vec(any_change(), 0..4), 1..4),
            1..12,
        ),
    ) {
        let mut held = Held::default();
        for commit in commits {
            let changes: Vec<_> = commit.into_iter().collect();
            let expected = model(&held, &changes);
            match apply(&held, &changes) {
                Ok(after) => {
                    prop_assert_eq!(Some(&after), expected.as_ref());
                    held = after;
                }
                Err(StoreError::UniqueTaken { .. }) => prop_assert_eq!(None, expected),
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}

#[test]
fn a_swap_works_in_either_order_and_a_clash_names_the_holder() {
    let hold = |value| vec![UniqueChange::Hold(key(0, value))];
    let before = apply(&Held::default(), &[(1, hold(1)), (2, hold(2))]).unwrap();
    let after = apply(&before, &[(1, hold(2)), (2, hold(1))]).unwrap();
    assert_eq!(after.0[&key(0, 1)].id.as_str(), "2");
    let back = apply(&after, &[(2, hold(2)), (1, hold(1))]).unwrap();
    assert_eq!(back, before);
    match apply(&before, &[(3, hold(1))]) {
        Err(StoreError::UniqueTaken { scope, value, holder }) => {
            assert_eq!((scope.as_str(), value.as_str()), ("scope0", "value1"));
            assert_eq!(holder, stream(tenant(1), "1"));
        }
        other => panic!("{other:?}"),
    }
}
