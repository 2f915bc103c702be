//! The proxy counts what it should, and fails as networks fail.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sequor_testserver::{Counts, Proxy, server};
use sqlx::{Connection as _, PgConnection, Row as _};
use tokio::time::timeout;

/// Longer than anything here takes, shorter than a hanging test.
const LIMIT: Duration = Duration::from_secs(30);

static SERVER: LazyLock<String> = LazyLock::new(server::url);

/// A proxy, and a connection through it of which nothing is counted yet.
async fn behind_a_proxy() -> (Proxy, PgConnection) {
    let proxy = Proxy::start(&SERVER).unwrap();
    let connection = connect(&proxy).await.unwrap();
    proxy.reset();
    (proxy, connection)
}

async fn connect(proxy: &Proxy) -> sqlx::Result<PgConnection> {
    PgConnection::connect(&proxy.url("postgres")).await
}

async fn run(connection: &mut PgConnection, sql: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop)
}

async fn add_one(connection: &mut PgConnection, number: i32) -> i32 {
    let query = sqlx::query_scalar("SELECT $1 + 1").bind(number);
    query.fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_simple_query_is_one_round_trip() {
    let (proxy, mut connection) = behind_a_proxy().await;
    run(&mut connection, "SELECT 1").await.unwrap();
    let one = Counts { round_trips: 1, waits: 1, queries: 1, ..Counts::default() };
    assert_eq!(proxy.counts(), one);
    run(&mut connection, "SELECT 1; SELECT 2").await.unwrap();
    assert_eq!(proxy.counts().round_trips, 2);
}

#[tokio::test]
async fn a_statement_is_parsed_once_and_then_only_executed() {
    let (proxy, mut connection) = behind_a_proxy().await;
    assert_eq!(add_one(&mut connection, 1).await, 2);
    let first = Counts { round_trips: 2, waits: 2, parses: 1, executes: 1, ..Counts::default() };
    assert_eq!(proxy.counts(), first);
    proxy.reset();
    assert_eq!(add_one(&mut connection, 2).await, 3);
    let again = Counts { round_trips: 1, waits: 1, executes: 1, ..Counts::default() };
    assert_eq!(proxy.counts(), again);
    assert_eq!(proxy.counts().statements(), 1);
}

#[tokio::test]
async fn a_transaction_costs_its_begin_and_its_commit() {
    let (proxy, mut connection) = behind_a_proxy().await;
    add_one(&mut connection, 1).await;
    proxy.reset();
    let mut transaction = connection.begin().await.unwrap();
    add_one(&mut transaction, 1).await;
    transaction.commit().await.unwrap();
    let counts = proxy.counts();
    assert_eq!((counts.round_trips, counts.queries, counts.executes), (3, 2, 1));
}

#[tokio::test]
async fn connections_are_counted_apart_and_together() {
    let (proxy, mut first) = behind_a_proxy().await;
    let mut second = connect(&proxy).await.unwrap();
    run(&mut first, "SELECT 1").await.unwrap();
    run(&mut second, "SELECT 1").await.unwrap();
    run(&mut second, "SELECT 1").await.unwrap();
    let each = proxy.counts_of_connections();
    let queries: Vec<u64> = each.iter().map(|counts| counts.queries).collect();
    assert_eq!(queries, [1, 2]);
    // The first had been counted before the reset.
    assert_eq!((proxy.counts().queries, proxy.counts().connections), (3, 1));
    second.close().await.unwrap();
    assert_eq!(proxy.counts().queries, 3);
}

#[tokio::test]
async fn large_messages_are_followed_across_segments() {
    let (proxy, mut connection) = behind_a_proxy().await;
    let sent = "Z".repeat(3_000_000);
    let query = sqlx::query("SELECT $1 || 'S', generate_series(1, 3)").bind(&sent);
    let rows = query.fetch_all(&mut connection).await.unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2].get::<&str, _>(0).len(), 3_000_001);
    let counts = proxy.counts();
    assert_eq!((counts.round_trips, counts.parses, counts.executes), (2, 1, 1));
}

#[tokio::test]
async fn every_round_trip_takes_the_delay_longer() {
    let (proxy, mut connection) = behind_a_proxy().await;
    let delay = Duration::from_millis(5);
    proxy.delay(delay);
    let start = Instant::now();
    for _ in 0..20 {
        run(&mut connection, "SELECT 1").await.unwrap();
    }
    let took = start.elapsed();
    assert!(took > 19 * delay, "20 round trips of 5 ms took {took:?}");
}

#[tokio::test]
async fn a_cut_ends_connections_and_lets_new_ones_in() {
    let (proxy, mut connection) = behind_a_proxy().await;
    proxy.cut();
    assert!(run(&mut connection, "SELECT 1").await.is_err());
    let mut next = connect(&proxy).await.unwrap();
    run(&mut next, "SELECT 1").await.unwrap();
}

#[tokio::test]
async fn a_cut_ends_a_statement_that_is_being_waited_for() {
    let (proxy, mut connection) = behind_a_proxy().await;
    let mut beside = PgConnection::connect(&SERVER).await.unwrap();
    let waiting = tokio::spawn(async move { run(&mut connection, "SELECT pg_sleep(60)").await });
    while proxy.counts().queries == 0 {
        tokio::task::yield_now().await;
    }
    proxy.cut();
    let waited = timeout(LIMIT, waiting).await.expect("it must notice").unwrap();
    assert!(waited.is_err());
    run(&mut beside, "SELECT 1").await.unwrap();
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_has_happened() {
    let (proxy, mut connection) = behind_a_proxy().await;
    let mut beside = PgConnection::connect(&SERVER).await.unwrap();
    let mut transaction = connection.begin().await.unwrap();
    let id = sqlx::query_scalar::<_, String>("SELECT pg_current_xact_id()::text");
    let id = id.fetch_one(&mut *transaction).await.unwrap();
    // The second from here is the commit.
    proxy.cut_before_answer(2);
    run(&mut transaction, "SELECT 1").await.unwrap();
    assert!(transaction.commit().await.is_err());
    let status = sqlx::query_scalar::<_, String>("SELECT pg_xact_status($1::text::xid8)").bind(id);
    assert_eq!(status.fetch_one(&mut beside).await.unwrap(), "committed");
    // Only that one gets lost.
    assert!(run(&mut connection, "SELECT 1").await.is_err());
    assert!(run(&mut connect(&proxy).await.unwrap(), "SELECT 1").await.is_ok());
}

#[tokio::test]
async fn a_paused_network_passes_nothing_on_until_it_resumes() {
    let (proxy, mut connection) = behind_a_proxy().await;
    proxy.pause();
    let waiting = tokio::spawn(async move { run(&mut connection, "SELECT 1").await });
    while proxy.counts().queries == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(proxy.counts().round_trips, 0);
    proxy.resume();
    timeout(LIMIT, waiting).await.expect("it must go on").unwrap().unwrap();
    assert_eq!(proxy.counts().round_trips, 1);
}

#[tokio::test]
async fn a_dropped_proxy_ends_its_connections() {
    let (proxy, mut connection) = behind_a_proxy().await;
    proxy.pause();
    drop(proxy);
    let result = timeout(LIMIT, run(&mut connection, "SELECT 1")).await;
    assert!(result.expect("it must notice").is_err());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_for_the_client() {
    let proxy = Proxy::start("127.0.0.1:1").unwrap();
    let result = timeout(LIMIT, connect(&proxy)).await;
    assert!(result.expect("it must notice").is_err());
}
