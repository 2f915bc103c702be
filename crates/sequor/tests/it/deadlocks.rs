//! Handlers and projections that deadlock through rows of their own, on PostgreSQL: the server ends
//! one of them, the bus tries it again, and the store counts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sequor::postgres::{PostgresSettings, PostgresStore, install};
use sequor::{Projection, ProjectionError, Repo, StoredEvent, async_trait};
use sequor_testserver::Database;
use sqlx::PgConnection;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::bank::{Bank, bank, deposit, keyed, open};
use crate::doing::{Handling, Run, doing, run};
use crate::watched::Watched;

const BUS: &str = "sequor_test_bus";
const ROWS: &str = "CREATE TABLE rows (
        tenant_id uuid, number integer, amount bigint, PRIMARY KEY (tenant_id, number)
    );
    INSERT INTO rows SELECT '018f2f6e-0000-7000-8000-000000000001', number, 0
    FROM generate_series(1, 2) AS number;
    SELECT sequor.wall('rows')";
const ADD: &str = "UPDATE rows SET amount = amount + 1 WHERE number = $1";

/// A database with two rows of the user's own.
async fn rows() -> Arc<Database> {
    let database = Database::new().await;
    install(&PostgresSettings::new(database.owner())).await.unwrap();
    database.make_role(BUS, "sequor_app, sequor_system").await;
    database.run(ROWS).await;
    Arc::new(database)
}

async fn store(database: &Arc<Database>) -> Watched<PostgresStore> {
    let settings = PostgresSettings::new(database.role(BUS));
    let store = PostgresStore::open(settings).await.unwrap();
    Watched::over(store, Arc::clone(database) as _)
}

/// What was added to the rows.
async fn added(database: &Database) -> i64 {
    let sum = sqlx::query_scalar("SELECT sum(amount)::bigint FROM rows");
    sum.fetch_one(&mut database.session().await).await.unwrap()
}

/// Two who each write both rows, in opposite order; at first each has written one before either
/// goes on to the other.
struct Crossing {
    begun: AtomicUsize,
    halfway: Barrier,
}

impl Crossing {
    fn new() -> Arc<Self> {
        Arc::new(Self { begun: AtomicUsize::new(0), halfway: Barrier::new(2) })
    }

    async fn write(&self, first: i32, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query(ADD).bind(first).execute(&mut *connection).await?;
        if self.begun.fetch_add(1, Ordering::SeqCst) < 2 {
            self.halfway.wait().await;
        }
        sqlx::query(ADD).bind(3 - first).execute(connection).await.map(drop)
    }

    /// How often it was tried.
    fn tries(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_deadlock_through_their_own_rows_end_well_and_are_counted() {
    let (database, crossing) = (rows().await, Crossing::new());
    let (store, crosses) = (store(&database).await, Arc::clone(&crossing));
    let handler = doing(move |run: &Run, repo: &mut Repo<Watched<PostgresStore>>| {
        let (crosses, first) = (Arc::clone(&crosses), i32::try_from(run.cents).unwrap());
        let handling: Handling<'_, Run> = Box::pin(async move {
            let written = crosses.write(first, repo.connection()?).await;
            written.map_err(|error| repo.own_rows_failed(error))?;
            Ok(0)
        });
        handling
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    let mut running = JoinSet::new();
    for first in [1, 2] {
        let bank = bank.clone();
        running
            .spawn(async move { bank.execute(run(&[], first), keyed(&first.to_string())).await });
    }
    assert!(running.join_all().await.into_iter().all(|answer| answer.unwrap().is_executed()));
    assert_eq!((crossing.tries(), store.inner.stats().deadlocks), (3, 1));
    assert_eq!(added(&database).await, 4);
}

/// As a level stricter than sequor's gives, or a trigger of the user's own.
#[tokio::test]
async fn a_serialization_failure_of_a_handler_is_tried_again_and_counted() {
    const FAIL: &str = "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$";
    let store = store(&rows().await).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&runs);
    let handler = doing(move |_: &Run, repo: &mut Repo<Watched<PostgresStore>>| {
        let is_first = counts.fetch_add(1, Ordering::SeqCst) == 0;
        let handling: Handling<'_, Run> = Box::pin(async move {
            if is_first {
                let failed = sqlx::raw_sql(FAIL).execute(repo.connection()?).await;
                failed.map_err(|error| repo.own_rows_failed(error))?;
            }
            Ok(0)
        });
        handling
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    assert!(bank.execute(run(&[], 0), keyed("k")).await.unwrap().is_executed());
    assert_eq!((runs.load(Ordering::SeqCst), store.inner.stats().deadlocks), (2, 1));
}

/// Writes the rows in an order that hangs on the account.
struct Crosses(Arc<Crossing>);

#[async_trait]
impl Projection<PgConnection> for Crosses {
    fn name(&self) -> &str {
        "crosses"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        if event.name.as_str() == "account.posted" {
            let first = if event.stream.id.as_str() == "a" { 1 } else { 2 };
            self.0.write(first, connection).await?;
        }
        Ok(())
    }
}

/// In two processes, since commits of one may share a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn projections_that_deadlock_through_their_rows_end_well_and_are_counted() {
    let (database, crossing) = (rows().await, Crossing::new());
    let (mut running, mut stores) = (JoinSet::new(), Vec::new());
    for account in ["a", "b"] {
        let store = store(&database).await;
        stores.push(store.inner.clone());
        let crosses = Crosses(Arc::clone(&crossing));
        let bank: Bank<PostgresStore> = bank(&store).projection(crosses).build().unwrap();
        open(&bank, &[account]).await;
        running.spawn(async move { bank.execute(deposit(account, 1), keyed(account)).await });
    }
    assert!(running.join_all().await.into_iter().all(|answer| answer.unwrap().is_executed()));
    let counted: u64 = stores.iter().map(|store| store.stats().deadlocks).sum();
    assert_eq!((crossing.tries(), counted), (3, 1));
    assert_eq!(added(&database).await, 4);
}
