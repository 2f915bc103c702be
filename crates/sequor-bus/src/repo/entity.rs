//! The aggregates of a unit of work.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use sequor_core::commit::StreamDraft;
use sequor_core::{Aggregate, Commit, StreamId, UniqueChange, Version};

use crate::cache::Entry;

/// Points to an aggregate of type `A` in the [`Repo`](super::Repo) that loaded it.
pub struct Ref<A> {
    index: usize,
    aggregate: PhantomData<fn() -> A>,
}

impl<A> Ref<A> {
    pub(super) fn index(self) -> usize {
        self.index
    }

    fn to(index: usize) -> Self {
        Self { index, aggregate: PhantomData }
    }
}

impl<A> Clone for Ref<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Ref<A> {}

impl<A> fmt::Debug for Ref<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ref({})", self.index)
    }
}

/// An aggregate of a unit of work.
pub(super) struct Entity {
    stream: StreamId,
    /// As stored.
    pub(super) version: Version,
    /// With what has happened since.
    state: Arc<dyn Any + Send + Sync>,
    unique: Vec<UniqueChange>,
    /// Whether its version is part of the commit.
    pub(super) in_commit: bool,
    /// Whether the transaction has changed it.
    changed: bool,
}

/// All aggregates of a unit of work, each once.
#[derive(Default)]
pub(super) struct Entities(Vec<Entity>);

impl Entities {
    /// The aggregate, if it is here; `Some(None)` when it is, as another type.
    pub(super) fn find<A: Aggregate>(&self, stream: &StreamId) -> Option<Option<Ref<A>>> {
        let index = self.0.iter().position(|entity| entity.stream == *stream)?;
        Some(self.get(index).state.is::<A>().then_some(Ref::to(index)))
    }

    pub(super) fn add<A: Aggregate>(
        &mut self,
        stream: StreamId,
        version: Version,
        state: Arc<A>,
    ) -> Ref<A> {
        let (unique, in_commit, changed) = (Vec::new(), false, false);
        self.0.push(Entity { stream, version, state, unique, in_commit, changed });
        Ref::to(self.0.len() - 1)
    }

    pub(super) fn get(&self, index: usize) -> &Entity {
        self.0.get(index).expect("the reference comes from this unit of work")
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Entity {
        self.0.get_mut(index).expect("the reference comes from this unit of work")
    }

    pub(super) fn state<A: Aggregate>(&self, aggregate: Ref<A>) -> &A {
        let state = self.get(aggregate.index).state.downcast_ref();
        state.expect("the reference comes from this unit of work")
    }

    /// Where an aggregate is, and at which version.
    pub(super) fn place<A: Aggregate>(&self, aggregate: Ref<A>) -> (StreamId, Version) {
        let Entity { stream, version, .. } = self.get(aggregate.index);
        (stream.clone(), *version)
    }

    /// Puts a newer stored state in an aggregate's place.
    pub(super) fn renew<A: Aggregate>(
        &mut self,
        aggregate: Ref<A>,
        version: Version,
        state: Arc<A>,
    ) {
        let entity = self.get_mut(aggregate.index);
        (entity.version, entity.state) = (version, state);
    }

    /// Lets an event happen to an aggregate; the cached state stays as it is.
    pub(super) fn apply<A: Aggregate>(&mut self, aggregate: Ref<A>, event: &A::Event) {
        let entity = self.get_mut(aggregate.index);
        let state = std::mem::replace(&mut entity.state, Arc::new(()));
        let mut state = state.downcast::<A>().expect("the reference comes from this unit of work");
        Arc::make_mut(&mut state).apply(event);
        entity.state = state;
        (entity.in_commit, entity.changed) = (true, true);
    }

    pub(super) fn change_unique(&mut self, index: usize, change: UniqueChange) {
        let entity = self.get_mut(index);
        entity.unique.push(change);
        entity.in_commit = true;
    }

    /// The parts of the next commit, with the index of each aggregate.
    pub(super) fn drafts(&self) -> impl Iterator<Item = (usize, StreamDraft)> {
        let part = |(index, entity): (usize, &Entity)| {
            let draft = StreamDraft {
                stream: entity.stream.clone(),
                expected: entity.version,
                after: None,
                unique: entity.unique.clone(),
            };
            (index, draft)
        };
        self.0.iter().enumerate().filter(|(_, entity)| entity.in_commit).map(part)
    }

    /// The commit's aggregates are now at the versions after it; the next commit starts from there.
    pub(super) fn written(&mut self, commit: &Commit) {
        let mut written: Vec<&mut Entity> = self.0.iter_mut().filter(|one| one.in_commit).collect();
        written.sort_by(|one, two| one.stream.cmp(&two.stream));
        for (entity, write) in written.into_iter().zip(&commit.streams) {
            entity.version = write.next;
            entity.in_commit = false;
            entity.unique.clear();
        }
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &StreamId> {
        self.0.iter().map(|entity| &entity.stream)
    }

    /// The aggregates to which something has happened, as they are now.
    pub(super) fn changed(&self) -> impl Iterator<Item = (StreamId, Entry)> {
        let entry = |entity: &Entity| {
            let (version, state) = (entity.version, Arc::clone(&entity.state));
            (entity.stream.clone(), Entry { version, state })
        };
        self.0.iter().filter(|entity| entity.changed).map(entry)
    }
}
