//! The walls between tenants, tried as the roles that work here: what direct SQL, the functions and
//! a changed setting can and cannot reach.

use sequor_core::ports::{Transact, Transaction};
use sequor_core::{Projections, StoreError};
use sequor_postgres::PostgresStore;
use sequor_testserver::Database;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::support::{
    BUS, checked, commit, draft, events, fresh, installed, open, record, session_as, settings,
    tenant, user_session, with_key,
};

const TABLES: [&str; 5] = ["commands", "events", "streams", "idempotency_keys", "unique_keys"];

async fn try_sql(session: &mut PgConnection, sql: &str) -> Result<u64, sqlx::Error> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(session).await;
    done.map(|done| done.rows_affected())
}

fn state(result: Result<u64, sqlx::Error>) -> String {
    let error = result.expect_err("it must be refused");
    error.as_database_error().unwrap().code().unwrap().into_owned()
}

/// Two tenants with a keyed command each.
async fn two_tenants() -> Database {
    let database = installed().await;
    let store = open(&database).await;
    for number in 1..=2 {
        let one = draft(tenant(number), &format!("of-{number}"), 0);
        fresh(commit(&store, checked(with_key(one, "k"))).await);
    }
    database
}

async fn count(session: &mut PgConnection, sql: String) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(session).await.unwrap()
}

#[tokio::test]
async fn user_sql_sees_its_own_tenant_only() {
    let database = two_tenants().await;
    let mut session = user_session(&database, tenant(1)).await;
    for table in ["commands", "events", "streams", "idempotency_keys"] {
        let all = count(&mut session, format!("SELECT count(*) FROM sequor.{table}")).await;
        assert_eq!(all, 1, "{table}");
    }
    let other = "SELECT count(*) FROM sequor.events WHERE aggregate_id = 'of-2'".to_owned();
    assert_eq!(count(&mut session, other).await, 0);
}

#[tokio::test]
async fn without_a_tenant_user_sql_sees_nothing() {
    let database = two_tenants().await;
    let mut session = session_as(&database, BUS).await;
    try_sql(&mut session, "SET ROLE sequor_app").await.unwrap();
    for table in TABLES {
        let all = count(&mut session, format!("SELECT count(*) FROM sequor.{table}")).await;
        assert_eq!(all, 0, "{table}");
    }
    // What a transaction leaves behind on a pooled session is the empty string, and no tenant.
    let before = "BEGIN; SET LOCAL sequor.tenant = '018f2f6e-0000-7000-8000-000000000001'; COMMIT";
    try_sql(&mut session, before).await.unwrap();
    let all = count(&mut session, "SELECT count(*) FROM sequor.events".to_owned()).await;
    assert_eq!(all, 0);
}

#[tokio::test]
async fn no_role_of_ours_writes_a_table_of_ours() {
    let database = two_tenants().await;
    for role in ["sequor_app", "sequor_system", BUS] {
        for table in TABLES {
            for sql in [
                format!("INSERT INTO sequor.{table} SELECT * FROM sequor.{table}"),
                format!("UPDATE sequor.{table} SET tenant_id = tenant_id"),
                format!("DELETE FROM sequor.{table}"),
                format!("TRUNCATE sequor.{table}"),
            ] {
                let mut session = session_as(&database, BUS).await;
                try_sql(&mut session, &format!("SET ROLE {role}")).await.unwrap();
                assert_eq!(state(try_sql(&mut session, &sql).await), "42501", "{role}: {sql}");
            }
        }
        for sql in [
            "SELECT nextval('sequor.positions')",
            "SELECT setval('sequor.positions', 1)",
            "DROP TABLE sequor.events",
            "ALTER TABLE sequor.events DISABLE ROW LEVEL SECURITY",
            "CREATE TABLE sequor.mine ()",
            "CREATE OR REPLACE FUNCTION sequor.tenant() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'",
        ] {
            let mut session = session_as(&database, BUS).await;
            try_sql(&mut session, &format!("SET ROLE {role}")).await.unwrap();
            assert_eq!(state(try_sql(&mut session, sql).await), "42501", "{role}: {sql}");
        }
    }
}

#[tokio::test]
async fn our_roles_own_nothing_and_pass_no_wall() {
    let database = installed().await;
    let mut owner = database.session().await;
    let owned = "SELECT count(*) FROM pg_class WHERE relowner IN (
        SELECT oid FROM pg_roles WHERE rolname IN ('sequor_app', 'sequor_system'))";
    assert_eq!(count(&mut owner, owned.to_owned()).await, 0);
    let mighty = "SELECT count(*) FROM pg_roles WHERE (rolsuper OR rolbypassrls OR rolcanlogin
        OR rolcreaterole OR rolcreatedb) AND rolname IN ('sequor_app', 'sequor_system')";
    assert_eq!(count(&mut owner, mighty.to_owned()).await, 0);
    // Whatever is called with the owner's rights looks for nothing on the caller's path.
    let loose = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'sequor'::regnamespace
        AND prosecdef AND NOT 'search_path=pg_catalog, pg_temp' = ANY (coalesce(proconfig, '{}'))";
    assert_eq!(count(&mut owner, loose.to_owned()).await, 0);
    let open_to_all = "SELECT count(*) FROM pg_proc, aclexplode(proacl) AS acl
        WHERE pronamespace = 'sequor'::regnamespace AND prosecdef AND acl.grantee = 0";
    assert_eq!(count(&mut owner, open_to_all.to_owned()).await, 0);
}

#[tokio::test]
async fn the_functions_refuse_another_tenant_than_the_transaction_speaks_for() {
    let database = two_tenants().await;
    let two = tenant(2).as_uuid().to_string();
    for sql in [
        format!("SELECT * FROM sequor.history('{two}', 'k', NULL, NULL, 0)"),
        format!("SELECT * FROM sequor.history('{two}', NULL, 'account', 'of-2', 0)"),
        format!("SELECT * FROM sequor.claim(100, '{two}', 'k')"),
        format!("SELECT sequor.unclaim('{two}', 'k')"),
    ] {
        let mut session = user_session(&database, tenant(1)).await;
        assert_eq!(state(try_sql(&mut session, &sql).await), "SQ001", "{sql}");
    }
}

#[tokio::test]
async fn user_sql_reads_no_log() {
    let database = two_tenants().await;
    for sql in [
        "SELECT * FROM sequor.read_log(0::smallint, 0, 1000000, 100)",
        "SELECT * FROM sequor.candidate(0::smallint)",
        "SELECT sequor.holders(0::smallint)",
    ] {
        let mut session = user_session(&database, tenant(1)).await;
        assert_eq!(state(try_sql(&mut session, sql).await), "42501", "{sql}");
    }
}

/// What cannot be walled: whoever may set the setting sees the tenant that it names. It is noticed
/// before anything becomes true.
#[tokio::test]
async fn a_changed_setting_reads_another_tenant_and_nothing_becomes_true() {
    let database = two_tenants().await;
    let store = open(&database).await;
    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let one = checked(with_key(draft(tenant(1), "changed", 0), "changed"));
    let change = format!("SET LOCAL sequor.tenant = '{}'", tenant(2).as_uuid());
    try_sql(transaction.connection(), &change).await.unwrap();
    let seen = count(transaction.connection(), "SELECT count(*) FROM sequor.events".into()).await;
    assert_eq!(seen, 1);
    let refused = transaction.write(one, &Projections::none()).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    assert!(transaction.commit().await.is_err());

    let mut transaction = store.begin(tenant(1)).await.unwrap();
    let one = checked(draft(tenant(1), "changed", 0));
    transaction.write(one, &Projections::none()).await.unwrap();
    try_sql(transaction.connection(), &change).await.unwrap();
    let refused = transaction.commit().await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    assert!(events(&store, "changed").await.is_empty());
}

#[tokio::test]
async fn what_sets_up_tables_leaves_nothing_in_the_session() {
    let database = installed().await;
    let mut settings = settings(&database);
    settings.connections_max = 2;
    let store = PostgresStore::open(settings).await.unwrap();
    let path = "SELECT count(*) FROM pg_settings WHERE name = 'search_path' AND source = 'session'";
    for (sql, is_right) in
        [("SET search_path = nowhere", true), ("SET search_path = nowhere; SELECT 1 / 0", false)]
    {
        assert_eq!(store.set_up(sql).await.is_ok(), is_right);
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        assert_eq!(count(transaction.connection(), path.to_owned()).await, 0, "{sql}");
        transaction.commit().await.unwrap();
    }
}

/// The session that user code has had goes back clean.
#[tokio::test]
async fn what_user_code_leaves_in_a_session_is_gone() {
    let database = two_tenants().await;
    let mut settings = settings(&database);
    settings.connections_max = 2;
    let store = PostgresStore::open(settings).await.unwrap();
    for version in 0..4 {
        let mut transaction = store.begin(tenant(1)).await.unwrap();
        let one = checked(draft(tenant(1), "left", version));
        let leave = "SET SESSION sequor.tenant = '018f2f6e-0000-7000-8000-000000000002';
            SET SESSION search_path = nowhere; SET SESSION lock_timeout = 1;
            CREATE TEMPORARY TABLE left_over (a int); SELECT pg_advisory_lock(4711);
            LISTEN something";
        try_sql(transaction.connection(), leave).await.unwrap();
        let back = format!("SET LOCAL sequor.tenant = '{}'", tenant(1).as_uuid());
        try_sql(transaction.connection(), &back).await.unwrap();
        transaction.write(one, &Projections::none()).await.unwrap();
        transaction.commit().await.unwrap();
        assert!(record(&store, "k").await.is_some());
        assert_eq!(events(&store, "left").await.len() as u64, version + 1);
    }
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(count(&mut database.session().await, held.to_owned()).await, 0);
}
