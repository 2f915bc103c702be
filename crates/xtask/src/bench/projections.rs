//! Read models behind the commands: how fast they catch up, and how late they are.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sequor::ports::{Follow, Transact};
use sequor::projections::{Runner, RunnerSettings};
use sequor::sqlite::SqliteStore;
use sequor::{
    CommandService, Meta, Projection, ProjectionError, Receipt, StoredEvent, Wants, async_trait,
};
use sequor_testserver::Cluster;
use sqlx::{PgConnection, SqliteConnection};
use tokio::task::JoinSet;

use super::domain::{Account, Deposit, Deposited, Fill, Keys, service, tenant};
use super::postgres;
use super::report::{Report, micros, rate, table};

const ACCOUNTS: u64 = 1_000;
const EVENTS_EACH: u64 = 100;
/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(600);

/// A connection on which balances are written.
#[async_trait]
trait Balances: Send {
    /// Adds to the balances of some accounts, in one statement.
    async fn add(&mut self, changes: &BTreeMap<&str, i64>) -> Result<(), ProjectionError>;
}

const CREATE_ON_SQLITE: &str =
    "CREATE TABLE balances (account TEXT PRIMARY KEY, cents INTEGER NOT NULL) STRICT";
const ADD_ON_SQLITE: &str = "INSERT INTO balances (account, cents)
    SELECT key, value FROM json_each(?) WHERE true
    ON CONFLICT (account) DO UPDATE SET cents = cents + excluded.cents";

#[async_trait]
impl Balances for SqliteConnection {
    async fn add(&mut self, changes: &BTreeMap<&str, i64>) -> Result<(), ProjectionError> {
        let pairs: Vec<_> =
            changes.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let changes = format!("{{{}}}", pairs.join(","));
        sqlx::query(ADD_ON_SQLITE).bind(changes).execute(self).await?;
        Ok(())
    }
}

const CREATE_ON_POSTGRES: &str = "CREATE TABLE balances (
        tenant_id uuid DEFAULT sequor.tenant(), account text, cents bigint NOT NULL,
        PRIMARY KEY (tenant_id, account));
    SELECT sequor.wall('balances')";
const ADD_ON_POSTGRES: &str = "INSERT INTO balances AS b (account, cents)
    SELECT * FROM unnest($1::text[], $2::bigint[])
    ON CONFLICT (tenant_id, account) DO UPDATE SET cents = b.cents + excluded.cents";

#[async_trait]
impl Balances for PgConnection {
    async fn add(&mut self, changes: &BTreeMap<&str, i64>) -> Result<(), ProjectionError> {
        let accounts: Vec<String> = changes.keys().map(ToString::to_string).collect();
        let cents: Vec<i64> = changes.values().copied().collect();
        sqlx::query(ADD_ON_POSTGRES).bind(accounts).bind(cents).execute(self).await?;
        Ok(())
    }
}

/// Balances of accounts: one statement for each event, or for each page.
struct Fold<C: ?Sized> {
    name: &'static str,
    by_page: bool,
    connection: PhantomData<fn(&C)>,
}

#[async_trait]
impl<C: Balances + ?Sized + 'static> Projection<C> for Fold<C> {
    fn name(&self) -> &str {
        self.name
    }

    fn wants(&self) -> Wants {
        Wants::events_of::<Account>()
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut C,
    ) -> Result<(), ProjectionError> {
        let Deposited { cents } = event.decode()?;
        connection.add(&[(event.stream.id.as_str(), i64::try_from(cents)?)].into()).await
    }

    async fn project_all(
        &self,
        events: &[&StoredEvent],
        connection: &mut C,
    ) -> Result<(), ProjectionError> {
        if !self.by_page {
            for event in events {
                self.project(event, connection).await?;
            }
            return Ok(());
        }
        let mut changes = BTreeMap::new();
        for event in events {
            let Deposited { cents } = event.decode()?;
            *changes.entry(event.stream.id.as_str()).or_default() += i64::try_from(cents)?;
        }
        connection.add(&changes).await
    }
}

/// Both tables, on SQLite and on PostgreSQL.
pub(super) async fn run(report: &mut Report, duration: Duration) -> Result<()> {
    let (mut catching_up, mut lags) = (Vec::new(), Vec::new());
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open_path(folder.path().join("projections.db")).await?;
    store.set_up(CREATE_ON_SQLITE).await?;
    measure("SQLite", store, (&mut catching_up, &mut lags), duration).await?;
    let cluster = Cluster::builder().durable().start()?;
    let database = postgres::fresh(&cluster).await?;
    database.run(CREATE_ON_POSTGRES).await;
    let store = postgres::open(&database).await?;
    measure("PostgreSQL", store, (&mut catching_up, &mut lags), duration).await?;
    report.add(
        "A projection catches up",
        "100,000 deposits on 1,000 accounts of one tenant are folded into a table of balances, while \
         nobody writes: one statement for each event, or `project_all` with one for each page.",
        table(&["what", "events a step", "events /s"], catching_up),
    );
    report.add(
        "How late a projection is",
        "2,000 deposits a second, by 32 callers, and the same balances behind them in one process. \
         The lag is what `wait_for(&receipt)` takes once the command is answered.",
        table(&["store", "commands /s", "lag p50 µs", "lag p99 µs"], lags),
    );
    Ok(())
}

type Rows<'r> = &'r mut Vec<Vec<String>>;

async fn measure<S: Follow + Clone>(
    name: &str,
    store: S,
    (catching_up, lags): (Rows<'_>, Rows<'_>),
    duration: Duration,
) -> Result<()>
where
    <S as Transact>::Connection: Balances,
{
    let service = service(store.clone(), 10_000)?;
    let last = fill(&service).await?;
    for (fold, by_page, events_max) in
        [("each", false, 500), ("page", true, 500), ("page-large", true, 5_000)]
    {
        let per_second = catch_up(&store, (fold, by_page), events_max, &last).await?;
        let statements = if by_page { "a statement a page" } else { "a statement an event" };
        let what = format!("{name}, {statements}");
        catching_up.push(vec![what, events_max.to_string(), rate(per_second)]);
    }
    let seen = lag(&store, &service, duration).await?;
    lags.push([vec![name.to_owned()], seen].concat());
    Ok(())
}

/// Writes what is to be taken in, and answers the last receipt.
async fn fill<S: Follow>(service: &CommandService<S>) -> Result<Receipt<()>> {
    let mut last = None;
    for account in 0..ACCOUNTS {
        let fill = Fill { account, events: EVENTS_EACH };
        last = Some(service.execute(fill, Meta::new(tenant()?)).await?);
    }
    last.context("there are accounts")
}

fn runner<S: Follow + Clone>(
    store: &S,
    (name, by_page): (&'static str, bool),
    events_max: usize,
) -> Result<Runner<S>>
where
    <S as Transact>::Connection: Balances,
{
    let settings = RunnerSettings::default().batch_events_max(events_max);
    let fold = Fold { name, by_page, connection: PhantomData };
    Ok(Runner::builder(store.clone()).projection(fold).settings(settings).start()?)
}

async fn catch_up<S: Follow + Clone>(
    store: &S,
    fold: (&'static str, bool),
    events_max: usize,
    last: &Receipt<()>,
) -> Result<f64>
where
    <S as Transact>::Connection: Balances,
{
    let start = Instant::now();
    let runner = runner(store, fold, events_max)?;
    let followed = runner.followed(fold.0).context("it was added")?;
    followed.wait_for(last, LONG).await?;
    let seconds = start.elapsed().as_secs_f64();
    runner.stop().await;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 events")]
    let events = (ACCOUNTS * EVENTS_EACH) as f64;
    Ok(events / seconds)
}

/// Commands at a steady pace, each waited for.
async fn lag<S: Follow + Clone>(
    store: &S,
    service: &CommandService<S>,
    duration: Duration,
) -> Result<Vec<String>>
where
    <S as Transact>::Connection: Balances,
{
    const CALLERS: u64 = 32;
    const PACE: Duration = Duration::from_millis(16);
    let runner = runner(store, ("page", true), 500)?;
    let followed = runner.followed("page").context("it was added")?;
    let start = Instant::now();
    let lags = Arc::new(Mutex::new(Vec::<Duration>::new()));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (service, followed, lags) = (service.clone(), followed.clone(), Arc::clone(&lags));
        callers.spawn(async move {
            let mut ticks = tokio::time::interval(PACE);
            for number in 0.. {
                ticks.tick().await;
                if start.elapsed() >= duration {
                    break;
                }
                let account = (caller + number * CALLERS) % ACCOUNTS;
                let deposit = Deposit { account, cents: 1 };
                let receipt = service.execute(deposit, Keys::None.meta(number)?).await?;
                let answered = Instant::now();
                followed.wait_for(&receipt, LONG).await?;
                let lag = answered.elapsed();
                lags.lock().unwrap_or_else(PoisonError::into_inner).push(lag);
            }
            anyhow::Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    let seconds = start.elapsed().as_secs_f64();
    runner.stop().await;
    let mut lags = std::mem::take(&mut *lags.lock().unwrap_or_else(PoisonError::into_inner));
    lags.sort_unstable();
    let at = |part: usize| lags.get(lags.len() * part / 100).copied().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 commands")]
    let per_second = lags.len() as f64 / seconds;
    Ok(vec![rate(per_second), micros(at(50)), micros(at(99))])
}
