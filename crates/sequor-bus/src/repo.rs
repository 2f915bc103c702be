//! [`Repo`]: the unit of work over loaded aggregates, and the one place where anything becomes
//! true.

mod backing;
mod commit;
mod entity;
mod load;
mod speculation;

use std::fmt;
use std::sync::Arc;

use sequor_core::event::EventName;
use sequor_core::ports::{Store, Transaction};
use sequor_core::{
    Aggregate, AggregateId, Command, CommandId, CommandMeta, Decision, Error, Event,
    IdempotencyKey, Invalid, Json, Meta, Name, Record, StoreError, StreamId, TenantId,
    UniqueChange, UniqueKey, Version,
};

pub(crate) use backing::Backing;
use entity::Entities;
pub use entity::Ref;
pub(crate) use load::Belief;
pub(crate) use speculation::Speculation;

use crate::envelope::{Envelope, Options};
use crate::error::{Halt, RepoError};
use crate::retry::Past;
use crate::route::ServiceId;

/// The unit of work of a command: loads aggregates, takes in what happens to them, and makes all
/// of it true together.
///
/// A handler gets one with an open transaction; whatever it does through it, the key, the events
/// and its own rows become true together, or not at all.
pub struct Repo<S: Store> {
    backing: Arc<Backing<S>>,
    ground: Ground<S>,
    /// The command that it works for; in a shared transaction one after the other.
    meta: CommandMeta,
    entities: Entities,
    events: Vec<(usize, EventName, Json)>,
    issued: Vec<Envelope>,
    /// The command whose key was claimed last.
    claimed: Option<CommandId>,
    /// Whether the store has answered a handler in a way that trying again may change.
    transient: bool,
    /// What its tries before this one have met and loaded.
    past: Past,
    /// Whether an aggregate came from the cache, and nobody has asked the store since.
    unchecked: bool,
    /// What the store knew under the key when it was asked for an aggregate.
    known: Option<Record>,
}

/// What a unit of work stands on.
enum Ground<S: Store> {
    /// Nothing that is certain: a decider decides first, and its commit is one step. `None` once it
    /// was submitted.
    Speculative(Option<Speculation>),
    /// An open transaction.
    Transaction(S::Transaction),
}

impl<S: Store> Repo<S> {
    /// A unit of work for a decider.
    pub(crate) fn speculative(
        backing: &Arc<Backing<S>>,
        envelope: &Envelope,
        speculation: Speculation,
    ) -> Result<Self, Invalid> {
        let ground = Ground::Speculative(Some(speculation));
        Ok(Self::on(backing, envelope.command_meta()?, ground))
    }

    /// A unit of work with an open transaction. After a try that failed it holds what was
    /// loaded before.
    pub(crate) async fn open(
        backing: &Arc<Backing<S>>,
        envelope: &Envelope,
        past: &Past,
    ) -> Result<Self, Halt> {
        let meta = envelope.command_meta()?;
        let mut transaction = backing.store.begin(meta.tenant).await?;
        for stream in past.to_hold() {
            transaction.hold(&stream).await?;
        }
        let repo = Self::on(backing, meta, Ground::Transaction(transaction));
        Ok(Self { past: past.clone(), ..repo })
    }

    fn on(backing: &Arc<Backing<S>>, meta: CommandMeta, ground: Ground<S>) -> Self {
        Self {
            backing: Arc::clone(backing),
            ground,
            meta,
            entities: Entities::default(),
            events: Vec::new(),
            issued: Vec::new(),
            claimed: None,
            transient: false,
            past: Past::default(),
            unchecked: false,
            known: None,
        }
    }

    /// For whom the command runs: what a handler's own rows are keyed by.
    #[must_use]
    pub fn tenant(&self) -> TenantId {
        self.meta.tenant
    }

    /// Id, key, actor, correlation and time of the command.
    #[must_use]
    pub fn meta(&self) -> &CommandMeta {
        &self.meta
    }

    /// Loads an aggregate of the command's tenant; a new one is in its default state, at version
    /// 0. Loading it again gives the same one, with what has happened to it since.
    ///
    /// # Errors
    /// [`RepoError`]: the id breaks its rules, the store cannot be read, or it holds an event that
    /// this build cannot read.
    pub async fn load<A: Aggregate>(&mut self, id: impl fmt::Display) -> Result<Ref<A>, RepoError> {
        let stream = self.stream::<A>(AggregateId::new(id)?)?;
        let loaded = self.load_stream(stream, Belief::None, None).await;
        self.transient |= loaded.as_ref().is_err_and(StoreError::is_transient);
        Ok(loaded?)
    }

    /// The connection of the command's transaction, for the handler's own rows.
    ///
    /// # Errors
    /// [`RepoError`] when there is no transaction, which is the case for deciders only.
    pub fn connection(&mut self) -> Result<&mut S::Connection, RepoError> {
        match &mut self.ground {
            Ground::Transaction(transaction) => Ok(transaction.connection()),
            Ground::Speculative(_) => Err(RepoError::without_transaction()),
        }
    }

    /// What to answer when a statement on [`Repo::connection`] has failed: a full disk is
    /// `Unavailable`, as everywhere, a wrong statement `Corrupt`.
    ///
    /// ```
    /// # use sequor_bus::{Repo, RepoError};
    /// # use sequor_core::ports::Store;
    /// # fn look<S: Store>(repo: &mut Repo<S>) -> Result<(), RepoError> {
    /// # let statement = || -> Result<(), std::io::Error> { Ok(()) };
    /// statement().map_err(|error| repo.own_rows_failed(error))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn own_rows_failed(
        &mut self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> RepoError {
        let error = match &self.ground {
            Ground::Transaction(transaction) => transaction.own_rows_failed(error.into()),
            Ground::Speculative(_) => return RepoError::without_transaction(),
        };
        self.transient |= error.is_transient();
        RepoError::from(error)
    }

    /// The state of an aggregate, with all that has happened to it in this unit of work.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    #[must_use]
    pub fn get<A: Aggregate>(&self, aggregate: Ref<A>) -> &A {
        self.entities.state(aggregate)
    }

    /// The version that the aggregate was loaded at, or that an earlier command of the same
    /// transaction has left. What was emitted since is not counted.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    #[must_use]
    pub fn version<A: Aggregate>(&self, aggregate: Ref<A>) -> Version {
        self.entities.get(aggregate.index()).version
    }

    /// Something happens to an aggregate.
    ///
    /// # Errors
    /// [`RepoError`] when the event has no portable JSON, or one that does not read back.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    pub fn emit<A: Aggregate>(
        &mut self,
        aggregate: Ref<A>,
        event: &A::Event,
    ) -> Result<(), RepoError> {
        Name::new(event.name().name)?;
        let payload = event.encode()?;
        let readable = A::Event::decode(event.name(), payload.as_str());
        readable.map_err(|reason| Invalid::not_readable("event", reason))?;
        self.entities.apply(aggregate, event);
        self.events.push((aggregate.index(), event.name(), payload));
        Ok(())
    }

    /// The aggregate was only read, and must be unchanged when the command becomes true. Guards
    /// decisions on several aggregates from write skew.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    pub fn guard<A: Aggregate>(&mut self, aggregate: Ref<A>) {
        self.entities.get_mut(aggregate.index()).in_commit = true;
    }

    /// The aggregate holds `value` in `scope`, unique in the tenant, instead of what it held there.
    ///
    /// # Errors
    /// [`RepoError`] when the scope or the value breaks its rules.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    pub fn hold<A: Aggregate>(
        &mut self,
        aggregate: Ref<A>,
        scope: &'static str,
        value: &str,
    ) -> Result<(), RepoError> {
        let unique = UniqueKey::new(Name::new(scope)?, value)?;
        self.entities.change_unique(aggregate.index(), UniqueChange::Hold(unique));
        Ok(())
    }

    /// The aggregate lets go of what it holds in `scope`.
    ///
    /// # Errors
    /// [`RepoError`] when the scope breaks the rules of a name.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    pub fn release<A: Aggregate>(
        &mut self,
        aggregate: Ref<A>,
        scope: &'static str,
    ) -> Result<(), RepoError> {
        let scope = Name::new(scope)?;
        self.entities.change_unique(aggregate.index(), UniqueChange::Release(scope));
        Ok(())
    }

    /// The aggregate ends: it lets go of every unique value that it holds.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    pub fn release_all<A: Aggregate>(&mut self, aggregate: Ref<A>) {
        self.entities.change_unique(aggregate.index(), UniqueChange::ReleaseAll);
    }

    /// Takes in a decision on an aggregate, and gives its output.
    ///
    /// # Errors
    /// [`RepoError`] when an event or a unique value cannot be stored.
    ///
    /// # Panics
    /// When the reference comes from another unit of work.
    pub fn take_in<A: Aggregate, O>(
        &mut self,
        aggregate: Ref<A>,
        decision: Decision<A::Event, O>,
    ) -> Result<O, RepoError> {
        self.guard(aggregate);
        decision.events.iter().try_for_each(|event| self.emit(aggregate, event))?;
        for change in decision.unique {
            self.entities.change_unique(aggregate.index(), change?);
        }
        Ok(decision.output)
    }

    /// Issues a command: it runs after this one, in the same transaction, through the same chain.
    /// It has the tenant, actor and correlation of this one, and the given key or none: a key is
    /// never inherited.
    ///
    /// # Errors
    /// [`RepoError`] when the command has no portable JSON.
    pub fn issue<C: Command>(
        &mut self,
        command: C,
        key: Option<IdempotencyKey>,
    ) -> Result<(), RepoError> {
        let meta = Meta { key, ..Meta::new(self.meta.tenant) };
        let envelope =
            Envelope::seal(Arc::new(command), meta, Options::default(), &self.backing.limits)?;
        self.issued.push(envelope);
        Ok(())
    }

    /// The service that this unit of work belongs to.
    pub(crate) fn service(&self) -> ServiceId {
        self.backing.service()
    }

    pub(crate) fn take_issued(&mut self) -> Vec<Envelope> {
        std::mem::take(&mut self.issued)
    }

    /// Halts with a handler's error. It does not tell any more whether trying again may help; the
    /// unit of work has seen it.
    pub(crate) fn halt(&self, error: Error) -> Halt {
        if self.transient { Halt::Transient(error) } else { Halt::Failed(error) }
    }

    /// Halts with the record that the store had under the key when it was asked for an aggregate.
    pub(crate) fn halt_if_known(&mut self) -> Result<(), Halt> {
        self.known.take().map_or(Ok(()), |record| Err(Halt::Known(Box::new(record))))
    }

    fn stream<A: Aggregate>(&self, id: AggregateId) -> Result<StreamId, Invalid> {
        Ok(StreamId { tenant: self.meta.tenant, aggregate: Name::new(A::NAME)?, id })
    }
}

impl<S: Store> fmt::Debug for Repo<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aggregates: Vec<_> = self.entities.streams().map(ToString::to_string).collect();
        f.debug_struct("Repo").field("aggregates", &aggregates).finish_non_exhaustive()
    }
}
