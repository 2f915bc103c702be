//! A cluster's life: it starts, crashes, recovers, and leaves nothing behind.

use sequor_testserver::{Cluster, ServerError, installed_versions, server};
use sqlx::{Connection as _, PgConnection};

async fn connect(cluster: &Cluster) -> PgConnection {
    PgConnection::connect(&cluster.url("postgres")).await.unwrap()
}

async fn setting(connection: &mut PgConnection, name: &str) -> String {
    let value = sqlx::query_scalar("SELECT current_setting($1)").bind(name);
    value.fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn every_installed_version_starts_and_answers() {
    let versions = installed_versions();
    assert!(!versions.is_empty(), "no version of at least 15 is installed");
    for binaries in versions {
        let cluster = Cluster::builder().binaries(binaries.clone()).start().unwrap();
        let mut connection = connect(&cluster).await;
        let version = setting(&mut connection, "server_version").await;
        assert!(version.starts_with(&binaries.major().to_string()), "{version}");
        assert_eq!(setting(&mut connection, "server_encoding").await, "UTF8");
        assert_eq!(setting(&mut connection, "fsync").await, "off");
        assert_eq!(setting(&mut connection, "synchronous_commit").await, "on");
        assert!(binaries.program("pg_dump").is_file());
    }
}

#[tokio::test]
async fn a_durable_cluster_flushes_and_takes_settings() {
    let builder = Cluster::builder().durable().setting("max_connections", "17");
    let cluster = builder.start().unwrap();
    let mut connection = connect(&cluster).await;
    for (name, value) in [("fsync", "on"), ("full_page_writes", "on"), ("max_connections", "17")] {
        assert_eq!(setting(&mut connection, name).await, value, "{name}");
    }
}

#[tokio::test]
async fn a_server_has_the_environment_that_it_was_given() {
    let cluster = Cluster::builder().environment("SEQUOR_GIVEN", "42").start().unwrap();
    let mut connection = connect(&cluster).await;
    // A server does not show its own; what it starts inherits it.
    let ask = "CREATE TEMPORARY TABLE seen (value text);
        COPY seen FROM PROGRAM 'printenv SEQUOR_GIVEN'";
    sqlx::raw_sql(ask).execute(&mut connection).await.unwrap();
    let seen: String =
        sqlx::query_scalar("SELECT value FROM seen").fetch_one(&mut connection).await.unwrap();
    assert_eq!(seen, "42");
}

#[tokio::test]
async fn what_was_committed_survives_an_immediate_stop() {
    let mut cluster = Cluster::start().unwrap();
    let url = cluster.url("postgres");
    let mut connection = connect(&cluster).await;
    sqlx::raw_sql("CREATE TABLE kept AS VALUES (42)").execute(&mut connection).await.unwrap();
    cluster.stop_immediate().unwrap();
    assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err());
    assert!(PgConnection::connect(&url).await.is_err());
    cluster.start_again().unwrap();
    assert_eq!(cluster.url("postgres"), url);
    assert!(cluster.log().contains("database system was not properly shut down"));
    let mut connection = connect(&cluster).await;
    let kept = sqlx::query_scalar::<_, i32>("SELECT column1 FROM kept");
    assert_eq!(kept.fetch_one(&mut connection).await.unwrap(), 42);
}

#[tokio::test]
async fn a_restart_ends_the_connections_and_keeps_the_data() {
    let mut cluster = Cluster::start().unwrap();
    let mut connection = connect(&cluster).await;
    sqlx::raw_sql("CREATE DATABASE kept").execute(&mut connection).await.unwrap();
    cluster.restart().unwrap();
    cluster.start_again().unwrap();
    assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err());
    assert!(PgConnection::connect(&cluster.url("kept")).await.is_ok());
}

#[tokio::test]
async fn a_dropped_cluster_leaves_nothing_behind() {
    let cluster = Cluster::start().unwrap();
    let (folder, url) = (cluster.folder().to_owned(), cluster.url("postgres"));
    drop(cluster);
    assert!(!folder.exists());
    assert!(PgConnection::connect(&url).await.is_err());
}

#[test]
fn a_setting_that_is_none_is_told_with_the_log() {
    let error = Cluster::builder().setting("no_such_setting", "1").start().unwrap_err();
    assert!(matches!(error, ServerError::Ended { .. }), "{error:?}");
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[tokio::test]
async fn the_shared_server_lets_tests_create_databases() {
    let mut connection = PgConnection::connect(&server::url()).await.unwrap();
    let may = "SELECT rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = current_user";
    assert!(sqlx::query_scalar::<_, bool>(may).fetch_one(&mut connection).await.unwrap());
}
