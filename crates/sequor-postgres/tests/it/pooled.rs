//! Behind PgBouncer in transaction mode: the whole suite once more, and what is different there.
//! Where it cannot be had, the suite runs without it, in the same messages; nothing else is tried.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use futures_util::future::join_all;
use sequor_core::ports::{
    CommitCommand, HistoryRequest, ReadHistory, ReadLog, Store, Transact, Transaction,
};
use sequor_core::{
    Position, Projection, ProjectionError, Projections, StoreError, StoredEvent, TenantId, Version,
};
use sequor_postgres::{
    MonthDrop, OpenError, PostgresSettings, PostgresStore, SettingsError, install,
};
use sequor_testserver::{Cluster, Counts, Database, PgBouncer, Proxy, server};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};
use tokio::task::JoinSet;

use crate::support::{
    BUS, checked, commit, deposit, draft, fresh, installed, key, keyed, not_tried, prepare,
    stream_of, tenant, with_key,
};

mod suite {
    sequor_conformance::conformance!(crate::conformance::Postgres::opened_by(super::settings));
}

/// One for all tests of this process.
static BOUNCER: LazyLock<Option<PgBouncer>> = LazyLock::new(|| {
    let started = PgBouncer::start_as(BUS, &server::url());
    started.inspect_err(|missing| not_tried(format!("PgBouncer: {missing}"))).ok()
});

/// How many sessions of the server PgBouncer keeps for a database.
const SESSIONS: u8 = 4;

fn settings(database: &Database) -> PostgresSettings {
    let port = BOUNCER.as_ref().map(PgBouncer::port);
    behind(database, port.unwrap_or_else(|| database.owner().get_port()))
}

fn behind(database: &Database, port: u16) -> PostgresSettings {
    let mut settings = PostgresSettings::new(database.role(BUS).host("127.0.0.1").port(port));
    settings.pooled = true;
    settings
}

async fn open(database: &Database) -> PostgresStore {
    PostgresStore::open(settings(database)).await.unwrap()
}

/// Another client of the pooler, with no manners.
async fn stranger(database: &Database) -> PgConnection {
    let server = settings(database).server.extra_float_digits(None);
    server.statement_cache_capacity(0).connect().await.unwrap()
}

async fn run(session: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(session).await.map(drop)
}

async fn number(session: &mut PgConnection, sql: &str) -> i64 {
    let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).persistent(false);
    query.fetch_one(session).await.unwrap()
}

/// What a text expression is in each of the server's sessions.
async fn in_each_session(database: &Database, sql: &str) -> Vec<String> {
    let (mut clients, mut found) = (Vec::new(), Vec::new());
    for _ in 0..SESSIONS {
        let mut client = stranger(database).await;
        run(&mut client, "BEGIN").await.unwrap();
        let read = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).persistent(false);
        found.push(read.fetch_one(&mut client).await.unwrap());
        clients.push(client);
    }
    for client in &mut clients {
        run(client, "ROLLBACK").await.unwrap();
    }
    found
}

/// Has PgBouncer make its sessions anew.
async fn reconnect(database: &Database) {
    let end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    database.run(end).await;
}

async fn counted(database: &Database) -> Option<(Proxy, PostgresStore)> {
    let bouncer = BOUNCER.as_ref()?;
    let proxy = Proxy::start(&format!("127.0.0.1:{}", bouncer.port())).unwrap();
    let store = PostgresStore::open(behind(database, proxy.port())).await.unwrap();
    fresh(commit(&store, deposit("warm", 0)).await);
    proxy.reset();
    Some((proxy, store))
}

fn taken(proxy: &Proxy) -> Counts {
    let counts = proxy.counts();
    proxy.reset();
    counts
}

#[tokio::test]
async fn a_keyed_commit_is_one_round_trip() {
    let database = installed().await;
    let Some((proxy, store)) = counted(&database).await else { return };
    fresh(commit(&store, keyed("k", "warm", 1)).await);
    let counts = taken(&proxy);
    assert_eq!((counts.round_trips, counts.queries, counts.parses), (1, 1, 0), "{counts:?}");
    // Who does not have the aggregate at hand reads it: the second one.
    let (stream, key) = (stream_of(tenant(1), "warm"), key("k2"));
    let after = Some((&stream, Version::NONE));
    let request = HistoryRequest { tenant: tenant(1), key: Some(&key), stream: after };
    assert_eq!(store.history(request).await.unwrap().events.len(), 2);
    let counts = taken(&proxy);
    assert_eq!((counts.round_trips, counts.parses), (1, 0), "{counts:?}");
}

#[tokio::test]
async fn a_handler_takes_no_more_trips_than_without_a_pooler() {
    let database = installed().await;
    let Some((proxy, store)) = counted(&database).await else { return };
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    assert_eq!(transaction.claim(tenant(1), &key("h")).await.unwrap(), None);
    transaction.write(keyed("h", "h", 0), &Projections::none()).await.unwrap();
    transaction.commit().await.unwrap();
    // BEGIN, claim, write, COMMIT.
    assert_eq!(taken(&proxy).round_trips, 4);
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    run(transaction.connection(), "SELECT 1").await.unwrap();
    transaction.write(deposit("h2", 0), &Projections::none()).await.unwrap();
    transaction.commit().await.unwrap();
    // BEGIN, its own SQL, write, a check that cleans up, COMMIT.
    let counts = taken(&proxy);
    assert_eq!((counts.round_trips, counts.parses), (5, 0), "{counts:?}");
}

/// Whatever is stored comes back as it was, though it travels inside SQL.
#[tokio::test]
async fn hostile_texts_are_stored_as_they_are() {
    let database = installed().await;
    let store = open(&database).await;
    let texts = [
        "'; DROP TABLE sequor.events; --",
        "\\'; SELECT 1; --",
        "$1 $2 {a,b} \"NULL\" \\\\ /* é 表 😀",
        "NULL",
    ];
    for (place, text) in texts.into_iter().enumerate() {
        let mut one = with_key(draft(tenant(1), text, 0), &format!("'k\\{place}$1"));
        one.payload = sequor_core::Json::of(&(text, "\n")).unwrap();
        one.output = one.payload.clone();
        one.events[0].2 = one.payload.clone();
        one.fingerprint = Some(sequor_core::Fingerprint::of("x", &one.payload));
        let one = checked(one);
        fresh(commit(&store, one.clone()).await);
        let stream = &one.streams[0].stream;
        let request =
            HistoryRequest { tenant: tenant(1), key: None, stream: Some((stream, Version::NONE)) };
        let history = store.history(request).await.unwrap();
        assert_eq!(history.events[0].payload, one.payload);
        let key = one.meta.key.as_ref();
        let request = HistoryRequest { tenant: tenant(1), key, stream: None };
        let record = store.history(request).await.unwrap().record.unwrap();
        assert_eq!((&record.output, record.fingerprint), (&one.output, one.fingerprint));
    }
}

/// Many callers of two tenants, more open transactions than the server has sessions, user SQL in
/// each, and a reader of the log: each sees its own tenant, and the reader skips nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_tenants_share_few_sessions_and_see_their_own() {
    if BOUNCER.is_none() {
        return;
    }
    let database = installed().await;
    let store = open(&database).await;
    let mut callers = JoinSet::new();
    for caller in 0..12 {
        let (store, tenant) = (store.clone(), tenant(1 + caller % 2));
        callers.spawn(async move {
            let id = format!("of-{}-{caller}", tenant.as_uuid());
            for version in (0..20).step_by(2) {
                let one =
                    checked(with_key(draft(tenant, &id, version), &format!("{id}.{version}")));
                fresh(commit(&store, one).await);
                handle(&store, tenant, &id, version + 1).await;
            }
        });
    }
    let mut seen = [0, 0];
    let mut afters = [Position::START; 2];
    let mut is_over = false;
    while !is_over {
        is_over = callers.is_empty();
        for (place, one) in [tenant(1), tenant(2)].into_iter().enumerate() {
            let partition = store.partition(one);
            let page = store.read_after(partition, afters[place], 1_000).await.unwrap();
            afters[place] = page.last().map_or(afters[place], |event| event.position);
            seen[place] += page.iter().filter(|event| event.stream.tenant == one).count();
        }
        while let Some(done) = callers.try_join_next() {
            done.unwrap();
        }
    }
    assert_eq!(seen, [120, 120]);
    let sessions = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'sequor'";
    assert!(number(&mut database.session().await, sessions).await <= SESSIONS.into());
}

/// A handler whose SQL must see its own tenant only, and which leaves its mark in the session.
async fn handle(store: &PostgresStore, tenant: TenantId, id: &str, version: u64) {
    let mut transaction = store.begin(tenant).await.unwrap();
    let others =
        format!("SELECT count(*) FROM sequor.events WHERE tenant_id <> '{}'", tenant.as_uuid());
    assert_eq!(number(transaction.connection(), &others).await, 0);
    let own = "SELECT count(*) FROM sequor.events";
    assert!(number(transaction.connection(), own).await > 0);
    run(transaction.connection(), &leave_behind(tenant)).await.unwrap();
    let one = checked(draft(tenant, id, version));
    transaction.write(one, &Projections::none()).await.unwrap();
    transaction.commit().await.unwrap();
}

/// What user SQL may leave in a session.
fn leave_behind(tenant: TenantId) -> String {
    format!(
        "SET SESSION sequor.tenant = '{}'; SET SESSION search_path = nowhere;
        SET SESSION lock_timeout = 4711; SET SESSION default_transaction_isolation = serializable;
        SET SESSION DateStyle = 'SQL, DMY'; SET SESSION TimeZone = 'Asia/Kathmandu';
        SET SESSION bytea_output = escape; SET SESSION standard_conforming_strings = off;
        CREATE TEMPORARY TABLE left_over (a int); SELECT pg_advisory_lock(4711); LISTEN something;
        DECLARE cursed CURSOR WITH HOLD FOR SELECT 1",
        tenant.as_uuid()
    )
}

const LEFT: &str = "SELECT concat_ws('|', coalesce(current_setting('sequor.tenant', true), ''),
    current_setting('search_path'), current_setting('lock_timeout'), current_setting('bytea_output'),
    current_setting('default_transaction_isolation'), current_user,
    (SELECT count(*) FROM pg_cursors WHERE is_holdable), to_regclass('left_over'),
    (SELECT count(*) FROM pg_listening_channels()),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()))";
const CLEAN: &str = r#"|"$user", public|0|hex|read committed|sequor_test_bus|0|0|0"#;

#[tokio::test]
async fn nothing_of_a_tenant_is_left_for_the_next_user_of_a_session() {
    if BOUNCER.is_none() {
        return;
    }
    let database = installed().await;
    let store = open(&database).await;
    for version in 0..8 {
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        run(transaction.connection(), &leave_behind(tenant(1))).await.unwrap();
        transaction.write(deposit("a", version), &Projections::none()).await.unwrap();
        transaction.commit().await.unwrap();
        // And one that comes to nothing, after an error.
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        run(transaction.connection(), &leave_behind(tenant(1))).await.unwrap();
        run(transaction.connection(), "SELECT 1 / 0").await.unwrap_err();
        drop(transaction);
        // Its rollback is under way behind our back; the next one is behind it in the same session.
        fresh(commit(&store, checked(draft(tenant(2), "b", version))).await);
    }
    store.close().await;
    let left = in_each_session(&database, LEFT).await;
    assert!(left.iter().all(|left| left == CLEAN), "{left:?}");
}

#[tokio::test]
async fn what_sets_up_tables_leaves_nothing_in_the_session() {
    if BOUNCER.is_none() {
        return;
    }
    let database = installed().await;
    database.run("GRANT CREATE ON SCHEMA public TO sequor_app").await;
    let store = open(&database).await;
    store
        .set_up("SET search_path = public; CREATE TABLE mine (a int) -- and no more")
        .await
        .unwrap();
    let paths = in_each_session(&database, "SELECT current_setting('search_path')").await;
    assert!(paths.iter().all(|path| path == r#""$user", public"#), "{paths:?}");
    let mine = "SELECT count(*) FROM public.mine";
    assert_eq!(number(&mut database.session().await, mine).await, 0);
}

/// The pooler takes what a session says of itself for its client's wish.
#[tokio::test]
async fn odd_formats_of_the_role_do_not_come_back_with_a_clean_session() {
    if BOUNCER.is_none() {
        return;
    }
    let database = installed().await;
    let name = database.name();
    for set in ["DateStyle = 'German'", "TimeZone = 'Asia/Kathmandu'", "client_encoding = 'LATIN1'"]
    {
        database.run(&format!("ALTER ROLE {BUS} IN DATABASE {name} SET {set}")).await;
    }
    let mut settings = settings(&database);
    settings.connections_max = 2;
    let store = PostgresStore::open(settings).await.unwrap();
    for version in 0..4 {
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        run(transaction.connection(), "SELECT 1").await.unwrap();
        let one = checked(draft(tenant(1), "表", version));
        transaction.write(one, &Projections::none()).await.unwrap();
        transaction.commit().await.unwrap();
        let stream = stream_of(tenant(1), "表");
        let stream = Some((&stream, Version::NONE));
        let request = HistoryRequest { tenant: tenant(1), key: None, stream };
        let events = store.history(request).await.unwrap().events;
        assert_eq!(events.last().unwrap().meta.time.as_micros(), 1_700_000_000_000_000);
    }
}

#[tokio::test]
async fn another_level_than_read_committed_is_refused() {
    if BOUNCER.is_none() {
        return;
    }
    let database = installed().await;
    let store = open(&database).await;
    fresh(commit(&store, deposit("a", 0)).await);
    let name = database.name();
    let alter = format!("ALTER ROLE {BUS} IN DATABASE {name}");
    let set = "SET default_transaction_isolation = 'repeatable read'";
    database.run(&format!("{alter} {set}")).await;
    reconnect(&database).await;

    let refused = PostgresStore::open(settings(&database)).await.unwrap_err();
    assert!(matches!(&refused, OpenError::Isolation { found, .. } if found == "repeatable read"));
    assert!(refused.to_string().contains("ALTER ROLE"), "{refused}");
    let refused = commit(&store, deposit("a", 1)).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    // A handler's transaction names its level.
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    transaction.write(deposit("a", 1), &Projections::none()).await.unwrap();
    transaction.commit().await.unwrap();

    database.run(&format!("{alter} RESET default_transaction_isolation")).await;
    reconnect(&database).await;
    fresh(commit(&store, deposit("a", 2)).await);
}

#[tokio::test]
async fn tables_are_not_installed_through_a_pooler() {
    let database = Database::new().await;
    let refused = install(&settings(&database)).await.unwrap_err();
    assert!(matches!(refused, OpenError::Settings(SettingsError::InstallPooled)), "{refused}");
}

#[tokio::test]
async fn a_pooler_that_nobody_has_named_says_what_to_set() {
    if BOUNCER.is_none() {
        return;
    }
    let database = installed().await;
    let mut unnamed = settings(&database);
    unnamed.pooled = false;
    let said = PostgresStore::open(unnamed).await.unwrap_err().to_string();
    assert!(said.contains("(08P01); this looks like a pooler"), "{said}");
    assert!(said.contains("set `PostgresSettings::pooled`"), "{said}");
}

const LATE: &str = "CREATE TABLE late (tenant_id uuid); SELECT sequor.wall('late');
    CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF sequor.tenant() IS DISTINCT FROM NEW.tenant_id OR current_user <> 'sequor_app' THEN
            RAISE EXCEPTION 'too late';
        END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION late()";

#[tokio::test]
async fn what_is_put_off_until_commit_still_knows_its_tenant() {
    let database = installed().await;
    database.run(LATE).await;
    let store = open(&database).await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let insert = format!("INSERT INTO late VALUES ('{}')", tenant(1).as_uuid());
    run(transaction.connection(), &insert).await.unwrap();
    transaction.write(deposit("a", 0), &Projections::none()).await.unwrap();
    transaction.commit().await.unwrap();
}

/// A projection that leaves something behind, in a batch.
struct Careless;

#[async_trait]
impl Projection<PgConnection> for Careless {
    fn name(&self) -> &str {
        "careless"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        Ok(run(connection, &leave_behind(event.stream.tenant)).await?)
    }
}

#[tokio::test]
async fn what_projections_leave_in_a_session_is_gone_with_their_transaction() {
    if BOUNCER.is_none() {
        return;
    }
    let database = installed().await;
    let store = open(&database).await;
    let careless = Projections(Arc::new([Arc::new(Careless) as _]));
    for version in 0..4 {
        let commits = [draft(tenant(1), "a", version), draft(tenant(2), "b", version)];
        let commits = commits.map(|one| store.commit(checked(one), &careless));
        for committed in join_all(commits).await {
            fresh(committed);
        }
        fresh(commit(&store, checked(draft(tenant(3), "c", version))).await);
    }
    store.close().await;
    let left = in_each_session(&database, LEFT).await;
    assert!(left.iter().all(|left| left == CLEAN), "{left:?}");
}

#[tokio::test]
async fn keys_are_archived_exported_and_read() {
    let database = installed().await;
    let store = open(&database).await;
    fresh(commit(&store, keyed("'old\\", "a", 0)).await);
    let age = "UPDATE sequor.idempotency_keys SET claimed_at = claimed_at - interval '91 days'";
    database.run(age).await;
    assert_eq!(store.reap_keys(10).await.unwrap(), 1);
    let months = store.archive_months().await.unwrap();
    let mut lines = Vec::new();
    let exported = store.export_archive_month(&months[0], &mut lines).await.unwrap();
    assert_eq!(exported.month.keys, 1);
    // It is not over yet, and says so.
    assert_eq!(store.drop_archive_month(&exported).await.unwrap(), MonthDrop::NotOver);
}

/// A pooler keeps our connection where a server would have lost it, and its marks with it.
#[tokio::test]
async fn marks_die_with_the_life_of_the_server() {
    if BOUNCER.is_none() {
        return;
    }
    let mut cluster = Cluster::start().unwrap();
    let bouncer = PgBouncer::start_as(BUS, &cluster.url("postgres")).unwrap();
    let database = Database::on(&cluster.url("postgres")).await;
    prepare(&database).await;
    let store = PostgresStore::open(behind(&database, bouncer.port())).await.unwrap();
    let partition = store.partition(tenant(1));
    let read = async || store.read_after(partition, Position::START, 10).await;
    fresh(commit(&store, deposit("a", 0)).await);
    assert_eq!(read().await.unwrap().len(), 1);
    cluster.restart().unwrap();
    let refused = read().await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(read().await.unwrap().len(), 1);
    crash(&database).await;
    let refused = read().await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    fresh(commit(&store, deposit("a", 1)).await);
    assert_eq!(read().await.unwrap().len(), 2);
}

/// Kills one of the server's processes, so that it throws out all others and recovers.
async fn crash(database: &Database) {
    let mut victim = database.session().await;
    let pid = number(&mut victim, "SELECT pg_backend_pid()::bigint").await;
    let mut witness = database.session().await;
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
    assert!(run(&mut witness, "SELECT pg_sleep(60)").await.is_err());
    while database.owner().connect().await.is_err() {}
}
