//! Builds a service, and checks it while that costs nothing.

mod error;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use sequor_core::names::is_name;
use sequor_core::ports::{Clock, Ids, Store};
use sequor_core::{Command, Decider, Event, Limits, Projection, Projections, Target};

pub use error::BuildError;

use crate::cache::Cache;
use crate::clock::{RandomIds, SystemClock};
use crate::dispatch::Dispatch;
use crate::idempotency::Idempotency;
use crate::lanes::Lanes;
use crate::middleware::{
    AllowAll, Authorize, Authz, Chain, Filter, Filters, Idempotent, Judge, KeyRefused, Middleware,
    Place, Tenancy,
};
use crate::repo::Backing;
use crate::retry::Retry;
use crate::route::{DeciderRoute, Handler, HandlerRoute, Route, Routes};
use crate::service::{CommandService, Inner};

/// Builds a [`CommandService`]. Whatever is not set has a default that is safe.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S: Store> {
    store: Arc<S>,
    routes: HashMap<&'static str, Arc<dyn Route<S>>>,
    projections: Vec<Arc<dyn Projection<S::Connection>>>,
    middleware: Vec<(Place, Arc<dyn Middleware>)>,
    filters: Filters,
    authorize: Arc<dyn Authorize>,
    tenancy: bool,
    idempotency: Option<Idempotency>,
    retry: Retry,
    limits: Limits,
    commands_max: usize,
    aggregates_cached_max: usize,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    /// The first thing that was found wrong.
    wrong: Option<BuildError>,
}

impl<S: Store> Builder<S> {
    pub(crate) fn new(store: S) -> Self {
        Self {
            store: Arc::new(store),
            routes: HashMap::new(),
            projections: Vec::new(),
            middleware: Vec::new(),
            filters: Filters::default(),
            authorize: Arc::new(AllowAll),
            tenancy: true,
            idempotency: Some(Idempotency::default()),
            retry: Retry::DEFAULT,
            limits: Limits::DEFAULT,
            commands_max: 100,
            aggregates_cached_max: 10_000,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            wrong: None,
        }
    }

    /// Commands `C` are decided by the aggregate `A`.
    pub fn decider<A: Decider<C>, C: Target>(mut self) -> Self {
        self.check_name(A::NAME, "aggregate");
        A::Event::NAMES.iter().for_each(|event| self.check_name(event.name, "event"));
        if let Err(reason) = A::Event::EVOLUTION.check(A::Event::NAMES) {
            self.found(BuildError::Evolution { aggregate: A::NAME, reason });
        }
        let route: Arc<dyn Route<S>> = Arc::new(DeciderRoute::<A, C>(PhantomData));
        self.add_route::<C>(&route);
        self
    }

    /// Commands `C` are handled by `handler`, in a transaction.
    pub fn handler<C: Command>(mut self, handler: impl Handler<C, S>) -> Self {
        let route: Arc<dyn Route<S>> = Arc::new(HandlerRoute(handler, PhantomData::<fn() -> C>));
        self.add_route::<C>(&route);
        self
    }

    /// A read model that is written in the command's own transaction.
    pub fn projection(mut self, projection: impl Projection<S::Connection>) -> Self {
        let name = projection.name();
        if !is_name(name) {
            self.found(BuildError::ProjectionWithoutName);
        } else if self.projections.iter().any(|other| other.name() == name) {
            self.found(BuildError::ProjectionTwice { name: name.to_owned() });
        }
        self.projections.push(Arc::new(projection));
        self
    }

    /// A middleware of your own. Those at the same place stand in the order in which they were
    /// added, outermost first.
    pub fn middleware(mut self, place: Place, middleware: impl Middleware) -> Self {
        self.middleware.push((place, Arc::new(middleware)));
        self
    }

    /// A check of commands, after their own `validate`.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.0.push(Box::new(filter));
        self
    }

    /// Who may do what. Default: [`AllowAll`].
    pub fn authorize(mut self, policy: impl Authorize) -> Self {
        self.authorize = Arc::new(policy);
        self
    }

    /// What a known key gets. Default: see [`Idempotency`].
    pub fn idempotency(mut self, settings: Idempotency) -> Self {
        if settings.wait_max > Duration::from_secs(300) {
            self.found(BuildError::setting("idempotency.wait_max", "0 s to 5 min"));
        }
        self.idempotency = Some(settings);
        self
    }

    /// Switches idempotency off. A command with a key is then refused, since its caller relies on
    /// what nobody does any more.
    pub fn without_idempotency(mut self) -> Self {
        self.idempotency = None;
        self
    }

    /// Leaves out the check that every command has a tenant, for services whose own middleware
    /// finds it out later. Needs [`Builder::without_idempotency`], since a key means nothing
    /// without its tenant.
    pub fn without_tenancy(mut self) -> Self {
        self.tenancy = false;
        self
    }

    /// How often a conflict is tried again. Default: three times.
    pub fn retry(mut self, retry: Retry) -> Self {
        if retry.retries_max > 100 || retry.pause_max > Duration::from_secs(10) {
            self.found(BuildError::setting("retry", "0 to 100 retries, pauses up to 10 s"));
        }
        self.retry = retry;
        self
    }

    /// Bounds of what one command may write. Default: see [`Limits`].
    pub fn limits(mut self, limits: Limits) -> Self {
        if !limits.are_in_range() {
            self.found(BuildError::setting("limits", "the ranges that `Limits` documents"));
        }
        self.limits = limits;
        self
    }

    /// How many commands may share a transaction, issued ones included. Default 100, 1 to 10,000;
    /// others wait to write until the last of them is done.
    pub fn commands_max(mut self, commands_max: usize) -> Self {
        if !(1..=10_000).contains(&commands_max) {
            self.found(BuildError::setting("commands_max", "1 to 10,000"));
        }
        self.commands_max = commands_max;
        self
    }

    /// How many aggregates are kept in memory, so that a hot command needs no load. Default
    /// 10,000, 0 (off) to 10,000,000; each costs its state's size.
    pub fn aggregates_cached_max(mut self, aggregates_max: usize) -> Self {
        if aggregates_max > 10_000_000 {
            self.found(BuildError::setting("aggregates_cached_max", "0 to 10,000,000"));
        }
        self.aggregates_cached_max = aggregates_max;
        self
    }

    /// Tells the time. Default: the machine's clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Gives out command ids. Default: UUIDv7 from the machine's time and chance.
    pub fn ids(mut self, ids: impl Ids) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Checks everything and builds the service.
    ///
    /// # Errors
    /// [`BuildError`], which says what to do.
    pub fn build(mut self) -> Result<CommandService<S>, BuildError> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        if self.idempotency.is_some() && !self.tenancy {
            return Err(BuildError::IdempotencyWithoutTenancy);
        }
        let cache = Arc::new(Cache::new(self.aggregates_cached_max));
        let backing = Arc::new(Backing {
            store: Arc::clone(&self.store),
            projections: Projections(std::mem::take(&mut self.projections).into()),
            limits: self.limits,
            lanes: Arc::new(Lanes::new(Arc::clone(&cache))),
            cache,
        });
        let dispatch = Dispatch {
            routes: Routes(std::mem::take(&mut self.routes)),
            backing,
            retry: self.retry,
            commands_max: self.commands_max,
        };
        let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
        let inner = Inner { chain: self.chain(), dispatch, clock, ids };
        Ok(CommandService { inner: Arc::new(inner) })
    }

    /// Tenancy → idempotency → authz → filters, and the user's own in between.
    fn chain(self) -> Chain {
        let own = |wanted: Place| {
            let here = self.middleware.iter().filter(move |(place, _)| *place == wanted);
            here.map(|(_, middleware)| Arc::clone(middleware))
        };
        let mut behind: Vec<Arc<dyn Middleware>> = own(Place::BeforeAuthz).collect();
        behind.push(Arc::new(Authz(Arc::clone(&self.authorize))));
        behind.extend(own(Place::BeforeFilters));
        behind.push(Arc::new(self.filters));

        let mut stations: Vec<Arc<dyn Middleware>> = own(Place::BeforeTenancy).collect();
        if self.tenancy {
            stations.push(Arc::new(Tenancy));
        }
        stations.extend(own(Place::BeforeIdempotency));
        stations.push(match self.idempotency {
            Some(settings) => {
                let speculate = behind.iter().all(|station| station.is_pure());
                let judge = Judge { settings, authorize: self.authorize, clock: self.clock };
                Arc::new(Idempotent::new(judge, speculate))
            }
            None => Arc::new(KeyRefused),
        });
        stations.extend(behind);
        Chain::new(stations)
    }

    fn add_route<C: Command>(&mut self, route: &Arc<dyn Route<S>>) {
        for name in C::NAMES {
            self.check_name(name, "command");
            match self.routes.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(Arc::clone(route));
                }
                Entry::Occupied(_) => self.found(BuildError::HandlerTwice { name }),
            }
        }
    }

    fn check_name(&mut self, name: &'static str, what: &'static str) {
        if !is_name(name) {
            self.found(BuildError::Name { name, what });
        }
    }

    fn found(&mut self, wrong: BuildError) {
        self.wrong.get_or_insert(wrong);
    }
}

impl<S: Store> fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("commands", &self.routes.keys())
            .field("idempotency", &self.idempotency)
            .field("retry", &self.retry)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
