//! Runs projections behind the commands: one task for each projection and partition.

pub(crate) mod settings;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sequor_core::checkpoint::{CheckpointId, Release};
use sequor_core::ports::{Clock, Follow, Listen, Transact};
use sequor_core::{Name, Partition, Position, Projection};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::settings::RunnerSettings;
use crate::board::Board;
use crate::clock::{MachineClock, name_runner};
use crate::error::StartError;
use crate::followed::Followed;
use crate::follower::{Follower, Work};
use crate::share::Share;

/// What projections of a store write their rows through.
pub(crate) type Connection<S> = <S as Transact>::Connection;

/// A projection of a store.
pub(crate) type Shown<S> = Arc<dyn Projection<Connection<S>>>;

/// Runs projections behind the commands: each event once, those of a stream in order, whoever dies.
///
/// Several runners, in several processes, share the partitions; when one dies, the others take over
/// what it had. Dropping a runner ends it like that; [`Runner::stop`] ends it in order.
///
/// ```
/// # use sequor_core::{Projection, ProjectionError, StoredEvent};
/// use sequor_memory::{MemoryStore, Tables};
/// use sequor_projections::Runner;
///
/// # #[derive(Clone, Default)]
/// # struct Count(u64);
/// struct Counting;
/// # #[async_trait::async_trait]
/// # impl Projection<Tables> for Counting {
/// #     fn name(&self) -> &str { "counting" }
/// #     async fn project(&self, _: &StoredEvent, tables: &mut Tables) -> Result<(), ProjectionError> {
/// #         tables.get_mut::<Count>().0 += 1;
/// #         Ok(())
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let runner = Runner::builder(store.clone()).projection(Counting).start()?;
/// let counting = runner.followed("counting").expect("it was added");
/// // … execute a command, and then: counting.wait_for(&receipt, timeout).await?
/// # let _ = counting;
/// runner.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct Runner<S: Follow> {
    followed: HashMap<String, Followed<S>>,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
    /// The store tells it of commits as long as it is there.
    _bells: Arc<dyn Listen>,
}

/// A runner under construction.
pub struct Builder<S: Follow> {
    store: Arc<S>,
    projections: Vec<Shown<S>>,
    settings: RunnerSettings,
    clock: Arc<dyn Clock>,
}

impl<S: Follow> Runner<S> {
    /// A runner of a store. Its projections are added to the builder.
    pub fn builder(store: S) -> Builder<S> {
        Builder {
            store: Arc::new(store),
            projections: Vec::new(),
            settings: RunnerSettings::default(),
            clock: Arc::new(MachineClock),
        }
    }

    /// A projection of this runner: to be waited for, and to settle what is parked.
    #[must_use]
    pub fn followed(&self, projection: &str) -> Option<&Followed<S>> {
        self.followed.get(projection)
    }

    /// Ends the runner in order: what is under way is finished, and the partitions are left to
    /// others at once.
    ///
    /// # Cancellation
    /// The runner ends all the same.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        while tasks.join_next().await.is_some() {}
    }
}

impl<S: Follow> Builder<S> {
    /// Runs a projection behind the commands.
    pub fn projection(mut self, projection: impl Projection<Connection<S>>) -> Self {
        self.projections.push(Arc::new(projection));
        self
    }

    /// How it works. Default: see [`RunnerSettings`].
    pub fn settings(mut self, settings: RunnerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Whose time stands beside what is parked. Default: the machine's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Starts it, inside a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`] when a projection has no proper name or version, or a setting is out of its
    /// range.
    pub fn start(self) -> Result<Runner<S>, StartError> {
        self.settings.check()?;
        let names = names_of(&self.projections)?;
        let Self { store, projections, settings, clock } = self;
        let partitions = store.partitions();
        let checkpoint = |(name, projection): (&Name, &Shown<S>), partition| CheckpointId {
            projection: name.clone(),
            version: projection.version(),
            partition,
        };
        let all = || names.iter().zip(&projections);
        let board =
            Board::new(all().flat_map(|one| {
                partitions.iter().map(move |partition| checkpoint(one, *partition))
            }));
        let (stop, stopping) = watch::channel(false);
        let mut bells = Bells::default();
        let (mut tasks, mut shares, mut followed) = (JoinSet::new(), Vec::new(), HashMap::new());
        let owner = name_runner();
        for (name, projection) in all() {
            let share = Share::of(partitions.len());
            let work = Arc::new(Work {
                store: Arc::clone(&store),
                projection: Arc::clone(projection),
                wants: projection.wants(),
                settings: settings.clone(),
                clock: Arc::clone(&clock),
                board: board.clone(),
                share: share.clone(),
                owner,
            });
            for partition in &partitions {
                let checkpoint = checkpoint((name, projection), *partition);
                let bell = bells.add(*partition);
                let follower = Follower::new(Arc::clone(&work), checkpoint, bell, stopping.clone());
                tasks.spawn(follower.run());
            }
            followed.insert(name.to_string(), Followed::new(work, name.clone()));
            shares
                .push((Release { projection: name.clone(), version: projection.version() }, share));
        }
        let life = Life { owner, ttl: settings.lease_ttl, shares };
        tasks.spawn(life.keep(Arc::clone(&store), stopping));
        let bells: Arc<dyn Listen> = Arc::new(bells);
        store.listeners().add(&bells);
        Ok(Runner { followed, stop, tasks: Mutex::new(tasks), _bells: bells })
    }
}

/// The names of projections, each once.
fn names_of<C: ?Sized + Send + 'static>(
    projections: &[Arc<dyn Projection<C>>],
) -> Result<Vec<Name>, StartError> {
    let mut names = Vec::<Name>::new();
    for projection in projections {
        let text = projection.name();
        let shortened = || StartError::Name { name: text.escape_debug().take(64).collect() };
        let name = Name::new(text.to_owned()).map_err(|_| shortened())?;
        if names.contains(&name) {
            return Err(StartError::Twice { name });
        }
        if i32::try_from(projection.version()).is_ok_and(|version| version > 0) {
            names.push(name);
        } else {
            return Err(StartError::Version { name });
        }
    }
    Ok(names)
}

/// Says that this runner is alive, and learns how many share the work of each projection.
struct Life {
    owner: Uuid,
    ttl: Duration,
    shares: Vec<(Release, Share)>,
}

impl Life {
    async fn keep<S: Follow>(self, store: Arc<S>, mut stopping: watch::Receiver<bool>) {
        while !*stopping.borrow() {
            for (release, share) in &self.shares {
                match store.check_in(release, self.owner, self.ttl).await {
                    Ok(alive) => share.divide(alive),
                    Err(error) => tracing::warn!(%error, "a runner could not say that it is alive"),
                }
            }
            tokio::select! {
                _ = stopping.changed() => {}
                () = tokio::time::sleep(self.ttl / 3) => {}
            }
        }
        for (release, _) in &self.shares {
            store.check_in(release, self.owner, Duration::ZERO).await.ok();
        }
    }
}

/// Wakes the followers of a partition when this process has committed to it.
#[derive(Default)]
struct Bells(HashMap<Partition, Vec<Arc<Notify>>>);

impl Bells {
    fn add(&mut self, partition: Partition) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        self.0.entry(partition).or_default().push(Arc::clone(&bell));
        bell
    }
}

impl Listen for Bells {
    fn committed(&self, partition: Partition, _: Position) {
        self.0.get(&partition).into_iter().flatten().for_each(|bell| bell.notify_one());
    }
}

impl<S: Follow> fmt::Debug for Runner<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("followed", &self.followed.keys()).finish_non_exhaustive()
    }
}

impl<S: Follow> fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("settings", &self.settings).finish_non_exhaustive()
    }
}
