//! User SQL that undoes, forges, breaks or blocks: what it may not do is noticed or refused, and
//! its neighbours do not feel it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sequor_core::ports::{CommitCommand, Transact, Transaction};
use sequor_core::{
    Commit, Projection, ProjectionError, Projections, RecordState, StoreError, StoredEvent,
    UniqueChange,
};
use sequor_postgres::PostgresStore;
use sqlx::PgConnection;
use tokio::task::JoinSet;

use crate::support::{
    checked, commit, count, deposit, draft, fresh, installed, key, keyed, open, proxied, settings,
    tenant, user_session,
};

/// A projection that runs a statement for one stream.
struct Runs(&'static str);

#[async_trait]
impl Projection<PgConnection> for Runs {
    fn name(&self) -> &str {
        "runs"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut PgConnection,
    ) -> Result<(), ProjectionError> {
        if event.stream.id.as_str() == "hostile" {
            sqlx::raw_sql(self.0).execute(connection).await?;
        }
        Ok(())
    }
}

fn runs(sql: &'static str) -> Projections<PgConnection> {
    Projections(Arc::new([Arc::new(Runs(sql)) as _]))
}

const EVENTS: &str = "SELECT count(*) FROM sequor.events";
const KEYS: &str = "SELECT count(*) FROM sequor.idempotency_keys";

#[tokio::test]
async fn what_was_written_and_undone_by_a_savepoint_is_not_answered_as_done() {
    let database = installed().await;
    let store = open(&database).await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    assert_eq!(transaction.claim(tenant(1), &key("k")).await.unwrap(), None);
    sqlx::raw_sql("SAVEPOINT sp").execute(transaction.connection()).await.unwrap();
    transaction.write(keyed("k", "hostile", 0), &runs("ROLLBACK TO sp")).await.unwrap();
    assert!(matches!(transaction.commit().await, Err(StoreError::Corrupt { .. })));
    // Between two commands of one transaction it is noticed as well.
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    sqlx::raw_sql("SAVEPOINT sp").execute(transaction.connection()).await.unwrap();
    transaction.write(deposit("a", 0), &Projections::none()).await.unwrap();
    sqlx::raw_sql("ROLLBACK TO sp").execute(transaction.connection()).await.unwrap();
    let refused = transaction.write(deposit("b", 0), &Projections::none()).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    drop(transaction);
    assert_eq!((count(&database, EVENTS).await, count(&database, KEYS).await), (0, 0));
    fresh(commit(&store, keyed("k", "hostile", 0)).await);
}

/// A key that user SQL claims by hand is forgotten when nothing is written under it.
#[tokio::test]
async fn a_claim_by_hand_poisons_no_key() {
    let database = installed().await;
    let store = open(&database).await;
    let mut session = user_session(&database, tenant(1)).await;
    let claim = "SELECT * FROM sequor.claim(10, '018f2f6e-0000-7000-8000-000000000001', 'k')";
    sqlx::raw_sql(claim).execute(&mut session).await.unwrap();
    sqlx::raw_sql("COMMIT").execute(&mut session).await.unwrap();
    assert_eq!(count(&database, KEYS).await, 0);
    fresh(commit(&store, keyed("k", "a", 0)).await);
}

/// The stream is another tenant's, the command is not.
#[tokio::test]
async fn a_commit_by_hand_reaches_no_stream_of_another_tenant() {
    let database = installed().await;
    let store = open(&database).await;
    fresh(commit(&store, checked(draft(tenant(2), "theirs", 0))).await);
    let forge = "SELECT * FROM sequor.commit(
        5, '018f2f6e-0000-7000-8000-000000000001', NULL, false, false, '{}',
        '{018f2f6e-0000-7000-8000-000000000001}', '{0}', ARRAY[gen_random_uuid()], '{NULL}', '{n}',
        '{\"{}\"}', '{NULL}', '{\"{}\"}', '{NULL}', ARRAY[gen_random_uuid()], '{NULL}',
        ARRAY[now()], '{\"[]\"}', '{1}', '{018f2f6e-0000-7000-8000-000000000002}', '{account}',
        '{theirs}', '{1}', '{NULL}', '{2}', ARRAY[gen_random_uuid()], '{1}', '{1}', '{1}', '{NULL}',
        '{2}', '{1}', '{1}', '{2}', '{n}', '{1}', '{\"{}\"}', '{}', '{}', '{}', '{}', '{}')";
    let mut session = user_session(&database, tenant(1)).await;
    let refused = sqlx::raw_sql(forge).execute(&mut session).await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "SQ001", "{refused}");
    assert_eq!(count(&database, EVENTS).await, 1);
}

/// A role or tenant that user SQL has changed does not outlive it, not even in its own batch.
#[tokio::test]
async fn a_changed_role_is_noticed() {
    let database = installed().await;
    let store = open(&database).await;
    for sql in
        ["RESET ROLE", "SELECT set_config('role', 'none', true)", "SET LOCAL sequor.tenant = ''"]
    {
        let refused = store.commit(deposit("hostile", 0), &runs(sql)).await;
        assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{sql}: {refused:?}");
    }
    assert_eq!(count(&database, EVENTS).await, 0);
}

/// Its caller says when a UUIDv7 was made; a lie does not make it run twice.
#[tokio::test]
async fn a_key_from_the_far_future_expires_like_others() {
    let database = installed().await;
    let store = open(&database).await;
    let far = "ffffffff-0000-7000-8000-000000000001";
    fresh(commit(&store, keyed(far, "a", 0)).await);
    database.run("UPDATE sequor.idempotency_keys SET claimed_at = '2020-01-01 00:00:00+00'").await;
    assert_eq!(store.reap_keys(10).await.unwrap(), 1);
    match commit(&store, keyed(far, "a", 1)).await {
        Ok(sequor_core::ports::Committed::Known(record)) => {
            assert_eq!(record.state, RecordState::Expired);
        }
        other => panic!("it ran: {other:?}"),
    }
}

/// Whatever a projection does to its statement, only its own command fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_neighbours_projection_fails_only_its_own_command() {
    let database = installed().await;
    let store = open(&database).await;
    for sql in [
        "SELECT 1 / 0",
        "SET LOCAL statement_timeout = '20ms'; SELECT pg_sleep(1)",
        "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'XX000'; END $$",
    ] {
        let mut callers = JoinSet::new();
        for n in 0..20 {
            let (store, id) =
                (store.clone(), if n == 7 { "hostile".into() } else { format!("{n}") });
            let version = count(&database, EVENTS).await / 19;
            let one = deposit(&id, if n == 7 { 0 } else { version.unsigned_abs() });
            callers.spawn(async move { (n, store.commit(one, &runs(sql)).await) });
        }
        for (n, answer) in callers.join_all().await {
            assert_eq!(answer.is_ok(), n != 7, "{n} of {sql}: {answer:?}");
        }
    }
}

/// What was prepared in a session may be gone; the next caller gets another session.
#[tokio::test]
async fn a_session_that_has_lost_its_statements_is_thrown_away() {
    let database = installed().await;
    let mut settings = settings(&database);
    (settings.connections_max, settings.writers_max) = (2, 1);
    let store = PostgresStore::open(settings).await.unwrap();
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    sqlx::raw_sql("DEALLOCATE ALL").execute(transaction.connection()).await.unwrap();
    transaction.write(deposit("a", 0), &Projections::none()).await.ok();
    drop(transaction);
    fresh(store.commit(deposit("hostile", 0), &runs("DEALLOCATE ALL")).await);
    let mut troubles = 0;
    for n in 0..20 {
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        troubles += u32::from(transaction.claim(tenant(1), &key(&format!("k{n}"))).await.is_err());
        drop(transaction);
        troubles += u32::from(commit(&store, deposit(&format!("b{n}"), 0)).await.is_err());
    }
    assert!(troubles <= 4, "{troubles} of 40 calls met the same session");
}

/// A stranger holds what 30 commands want; 200 others do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_wait_do_not_stop_those_who_need_not() {
    let database = installed().await;
    let store = open(&database).await;
    let mut stranger = database.session().await;
    let hold = "BEGIN; INSERT INTO sequor.idempotency_keys (tenant_id, key, command_id)
        SELECT '018f2f6e-0000-7000-8000-000000000001', 'held' || n, gen_random_uuid()
        FROM generate_series(0, 29) AS n;
        SELECT pg_advisory_xact_lock(hashtextextended(
            'sequor:unique:018f2f6e-0000-7000-8000-000000000001:email:held', 0))";
    sqlx::raw_sql(hold).execute(&mut stranger).await.unwrap();
    let (mut held, mut free) = (JoinSet::new(), JoinSet::new());
    for n in 0..230 {
        let store = store.clone();
        let wants: Commit = match n {
            0..15 => keyed(&format!("held{n}"), &format!("h{n}"), 0),
            15..30 => holding_email(&format!("h{n}")),
            _ => keyed(&format!("free{n}"), &format!("f{n}"), 0),
        };
        let callers = if n < 30 { &mut held } else { &mut free };
        callers.spawn(async move { commit(&store, wants).await });
    }
    for answer in free.join_all().await {
        fresh(answer);
    }
    assert_eq!(held.len(), 30);
    let early = held.try_join_next();
    assert!(early.is_none(), "they wait for the stranger: {early:?}");
    sqlx::raw_sql("ROLLBACK").execute(&mut stranger).await.unwrap();
    let answers = held.join_all().await;
    let fresh = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(fresh, 16, "all keys, and one of those who want the value: {answers:?}");
}

fn holding_email(id: &str) -> Commit {
    let mut one = draft(tenant(1), id, 0);
    let scope = sequor_core::Name::new("email").unwrap();
    let email = sequor_core::UniqueKey::new(scope, "held").unwrap();
    one.streams[0].unique.push(UniqueChange::Hold(email));
    checked(one)
}

/// A server that does not answer is a lost connection, in time.
#[tokio::test]
async fn nobody_waits_for_a_server_that_hangs_without_end() {
    let database = installed().await;
    let (proxy, store) = proxied(&database).await;
    fresh(commit(&store, deposit("a", 0)).await);
    let quick = settings_of(&database, &proxy);
    let quick = PostgresStore::open(quick).await.unwrap();
    fresh(commit(&quick, deposit("b", 0)).await);
    proxy.pause();
    let answer =
        tokio::time::timeout(Duration::from_secs(30), commit(&quick, deposit("b", 1))).await;
    assert!(matches!(answer, Ok(Err(StoreError::Unknown))), "{answer:?}");
    let begun = tokio::time::timeout(Duration::from_secs(30), quick.begin(tenant(1))).await;
    assert!(matches!(begun, Ok(Err(StoreError::Unavailable(_)))));
    proxy.resume();
}

/// Settings with short waits, through a proxy.
fn settings_of(
    database: &sequor_testserver::Database,
    proxy: &sequor_testserver::Proxy,
) -> sequor_postgres::PostgresSettings {
    let mut settings = settings(database);
    settings.server = settings.server.host("127.0.0.1").port(proxy.port());
    (settings.wait_max, settings.statement_time_max) =
        (Duration::from_secs(1), Duration::from_millis(500));
    settings
}
