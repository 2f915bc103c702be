//! Steps of projections behind the commands: what their SQL can reach and leave behind, and who waits
//! for whom.

use std::time::Duration;

use async_trait::async_trait;
use sequor_core::checkpoint::{CheckpointId, Mover, Progress};
use sequor_core::ports::{KeepCheckpoints, KeepLeases, ReadLog, Step, Store};
use sequor_core::{Name, Position, Projection, ProjectionError, StoreError, StoredEvent};
use sequor_postgres::{PostgresStep, PostgresStore};
use sequor_testserver::Database;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use crate::support::{
    checked, commit, count, deposit, draft, fresh, installed, open, settings, tenant,
};

/// Runs a statement.
struct Runs(&'static str);

#[async_trait]
impl Projection<PgConnection> for Runs {
    fn name(&self) -> &str {
        "runs"
    }

    async fn project(
        &self,
        _: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        sqlx::raw_sql(self.0).execute(connection).await?;
        Ok(())
    }
}

/// A table of the user's own, with its wall.
const NOTES: &str = "CREATE TABLE notes (tenant_id uuid NOT NULL DEFAULT sequor.tenant(),
    seen bigint NOT NULL DEFAULT 0); SELECT sequor.wall('notes')";
const COUNT_NOTES: &str = "SELECT count(*) FROM notes";

/// A store with an event of the first tenant, and the lease of a checkpoint there.
struct World {
    database: Database,
    store: PostgresStore,
    event: StoredEvent,
    checkpoint: CheckpointId,
    mover: Mover,
}

impl World {
    async fn new() -> Self {
        let database = installed().await;
        database.run(NOTES).await;
        let store = open(&database).await;
        fresh(commit(&store, deposit("a", 0)).await);
        let partition = store.partition(tenant(1));
        let event = store.read_after(partition, Position::START, 1).await.unwrap().remove(0);
        let projection = Name::new("runs").unwrap();
        let checkpoint = CheckpointId { projection, version: 1, partition };
        let lease = store.lease(&checkpoint, Uuid::from_u128(1), Duration::from_secs(60)).await;
        let mover = Mover::Term(lease.unwrap().unwrap().term);
        Self { database, store, event, checkpoint, mover }
    }

    async fn step(&self) -> PostgresStep {
        self.store.begin_step(&self.checkpoint, self.mover, &[]).await.unwrap().unwrap()
    }

    /// A step in which a statement runs, up to its end.
    async fn run(&self, sql: &'static str) -> Result<(), StoreError> {
        let mut step = self.step().await;
        step.project(&Runs(sql), &[&self.event]).await?;
        step.save(Progress { position: Some(self.event.position), streams: Vec::new() }).await
    }
}

#[tokio::test]
async fn a_projection_sees_and_writes_its_tenant_only() {
    let world = World::new().await;
    fresh(commit(&world.store, checked(draft(tenant(2), "theirs", 0))).await);
    world.database.run("INSERT INTO notes VALUES ('018f2f6e-0000-7000-8000-000000000002')").await;
    world
        .run(
            "INSERT INTO notes (seen) SELECT (SELECT count(*) FROM sequor.events) * 10
                + (SELECT count(*) FROM notes)",
        )
        .await
        .unwrap();
    let mut session = world.database.session().await;
    let rows = sqlx::query("SELECT tenant_id, seen FROM notes ORDER BY tenant_id");
    let rows = rows.fetch_all(&mut session).await.unwrap();
    let rows: Vec<(Uuid, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(*tenant(1).as_uuid(), 10), (*tenant(2).as_uuid(), 0)]);
    let theirs = "INSERT INTO notes VALUES ('018f2f6e-0000-7000-8000-000000000002')";
    let refused = world.run(theirs).await.unwrap_err();
    assert!(refused.to_string().contains("row-level security"), "{refused}");
}

#[tokio::test]
async fn a_projection_cannot_move_checkpoints_by_itself() {
    let world = World::new().await;
    for sql in [
        "UPDATE sequor.checkpoints SET position = 1000000",
        "SELECT sequor.lease('runs', 1, 0::smallint, gen_random_uuid(), 1)",
        "SELECT sequor.save_step('runs', 1, 0::smallint, '1', 9, '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
    ] {
        let refused = world.run(sql).await.unwrap_err();
        assert!(refused.to_string().contains("permission denied"), "{sql}: {refused}");
    }
}

#[tokio::test]
async fn a_step_that_its_projection_has_ended_or_changed_is_not_saved() {
    let world = World::new().await;
    for sql in ["ROLLBACK", "COMMIT", "COMMIT; BEGIN", "RESET ROLE", "SET LOCAL sequor.tenant = ''"]
    {
        let refused = world.run(sql).await;
        assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{sql}: {refused:?}");
        let step = world.step().await;
        assert_eq!(step.standing().position, Position::START, "{sql}");
    }
    world.run("INSERT INTO notes DEFAULT VALUES").await.unwrap();
    assert_eq!(count(&world.database, COUNT_NOTES).await, 1);
}

#[tokio::test]
async fn what_a_projection_puts_off_until_commit_runs_as_its_tenant() {
    let world = World::new().await;
    let late = "CREATE TEMP TABLE late (n int);
        CREATE FUNCTION pg_temp.tell() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO notes (seen) VALUES ((current_user = 'sequor_app')::int);
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER tell AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION pg_temp.tell();
        INSERT INTO late VALUES (1)";
    world.run(late).await.unwrap();
    assert_eq!(count(&world.database, "SELECT sum(seen)::bigint FROM notes").await, 1);
}

/// Each tenant's while it speaks for that tenant, though they share a transaction.
#[tokio::test]
async fn what_is_put_off_runs_for_the_tenant_that_has_put_it_off() {
    let world = World::new().await;
    let late = "CREATE TABLE late (tenant_id uuid NOT NULL DEFAULT sequor.tenant());
        SELECT sequor.wall('late');
        CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO notes (seen) VALUES ((NEW.tenant_id = sequor.tenant())::int);
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER tell AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION tell()";
    world.database.run(late).await;
    let mut theirs = world.event.clone();
    theirs.stream.tenant = tenant(2);
    let mut step = world.step().await;
    for event in [&world.event, &theirs] {
        step.project(&Runs("INSERT INTO late DEFAULT VALUES"), &[event]).await.unwrap();
    }
    step.save(Progress { position: Some(world.event.position), streams: Vec::new() })
        .await
        .unwrap();
    let seen = "SELECT count(DISTINCT tenant_id) * 10 + sum(seen)::bigint FROM notes";
    assert_eq!(count(&world.database, seen).await, 22);
}

#[tokio::test]
async fn what_a_projection_leaves_in_its_session_is_gone() {
    let world = World::new().await;
    let mut settings = settings(&world.database);
    settings.connections_max = 2;
    let store = PostgresStore::open(settings).await.unwrap();
    let world = World { store, ..world };
    world
        .run("CREATE TEMP TABLE left_behind (n int); SET search_path = pg_temp, public; LISTEN x")
        .await
        .unwrap();
    let look = "DO $$ BEGIN
        IF to_regclass('pg_temp.left_behind') IS NOT NULL
            OR current_setting('search_path') LIKE '%pg_temp%'
            OR EXISTS (SELECT FROM pg_listening_channels())
        THEN RAISE 'something is left'; END IF;
    END $$";
    world.run(look).await.unwrap();
}

/// Somebody else's step is waited for, and not for ever.
#[tokio::test]
async fn a_step_waits_a_bounded_time_for_another() {
    let world = World::new().await;
    let mut settings = settings(&world.database);
    settings.lock_wait_max = Duration::from_millis(50);
    let other = PostgresStore::open(settings).await.unwrap();
    let held = world.step().await;
    let waited = other.begin_step(&world.checkpoint, Mover::Operator, &[]).await;
    assert!(matches!(waited, Err(StoreError::Busy)), "{waited:?}");
    let taken = other.lease(&world.checkpoint, Uuid::from_u128(2), Duration::from_secs(1)).await;
    assert_eq!(taken.unwrap(), None, "it is not taken from under a step");
    drop(held);
    world.step().await;
}

/// The server undoes the step of a session that it has lost, and others go on.
#[tokio::test]
async fn a_step_whose_session_is_lost_holds_nobody_up() {
    let world = World::new().await;
    let held = world.step().await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'";
    assert_eq!(count(&world.database, kill).await, 1);
    let lost = held.save(Progress { position: Some(Position::new(9)), streams: Vec::new() }).await;
    assert!(matches!(lost, Err(StoreError::Unavailable(_) | StoreError::Unknown)), "{lost:?}");
    let step = loop {
        // Other idle sessions may be as old as the lost one.
        match world.store.begin_step(&world.checkpoint, world.mover, &[]).await {
            Ok(step) => break step.unwrap(),
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(step.standing().position, Position::START);
}

/// A lease whose end lies further ahead than any can was made before the clock was set back.
#[tokio::test]
async fn leases_outlive_no_change_of_the_clock() {
    let world = World::new().await;
    let other = Uuid::from_u128(2);
    let ttl = Duration::from_secs(60);
    assert_eq!(world.store.lease(&world.checkpoint, other, ttl).await.unwrap(), None);
    for moved in ["+ interval '2 days'", "- interval '2 days'"] {
        let held = world.store.lease(&world.checkpoint, Uuid::from_u128(1), ttl).await.unwrap();
        let shift = format!("UPDATE sequor.checkpoints SET leased_until = leased_until {moved}");
        world.database.run(shift.leak()).await;
        let taken = world.store.lease(&world.checkpoint, other, ttl).await.unwrap().unwrap();
        assert!(held.is_none_or(|held| held.term < taken.term), "{moved}");
        world.store.lease(&world.checkpoint, other, Duration::ZERO).await.unwrap();
    }
}
