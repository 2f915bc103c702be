//! Installing and opening: what is in the way is said, with what to do.

use std::num::NonZeroU16;

use sequor_core::ports::Store;
use sequor_postgres::{OpenError, PostgresSettings, PostgresStore, SettingsError, install};
use sequor_testserver::{Cluster, Database};
use tokio::task::JoinSet;

use crate::support::{BUS, commit, deposit, fresh, installed, not_tried, open, settings, tenant};

#[tokio::test]
async fn a_database_without_our_tables_says_what_to_run() {
    let database = Database::new().await;
    database.make_role(BUS, "pg_read_all_settings").await;
    let refused = PostgresStore::open(settings(&database)).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotInstalled { found: 0, .. }), "{refused}");
    assert!(refused.to_string().contains("sequor::postgres::install"), "{refused}");
}

#[tokio::test]
async fn installing_again_and_twice_at_a_time_changes_nothing() {
    let database = Database::new().await;
    let owner = PostgresSettings::new(database.owner());
    let mut installs = JoinSet::new();
    for _ in 0..4 {
        let owner = owner.clone();
        installs.spawn(async move { install(&owner).await });
    }
    for installed in installs.join_all().await {
        installed.unwrap();
    }
    database.make_role(BUS, "sequor_app, sequor_system").await;
    let before = open(&database).await.epoch();
    install(&owner).await.unwrap();
    assert_eq!(open(&database).await.epoch(), before);
}

#[tokio::test]
async fn a_role_without_our_rights_says_what_to_grant() {
    let database = installed().await;
    database.make_role("sequor_test_nobody", "pg_read_all_settings").await;
    let nobody = PostgresSettings::new(database.role("sequor_test_nobody"));
    let refused = PostgresStore::open(nobody).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotGranted { .. }), "{refused}");
    assert!(refused.to_string().contains("GRANT sequor_app"), "{refused}");
}

#[tokio::test]
async fn tables_of_an_older_release_say_what_to_run() {
    let database = installed().await;
    database.run("DELETE FROM sequor.migrations WHERE version > 1").await;
    let refused = PostgresStore::open(settings(&database)).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotInstalled { found: 1, .. }), "{refused}");
}

/// As after a restore of the tables without the sequence.
#[tokio::test]
async fn positions_behind_what_is_stored_are_refused() {
    let database = installed().await;
    let store = open(&database).await;
    for version in 0..5 {
        fresh(commit(&store, deposit("a", version)).await);
    }
    database.run("SELECT setval('sequor.positions', 3)").await;
    let refused = PostgresStore::open(settings(&database)).await.unwrap_err();
    assert!(matches!(refused, OpenError::PositionsBehind { next: 4, highest: 5 }), "{refused}");
    let repair = refused.to_string();
    let repair = repair.rsplit_once("the owner: ").unwrap().1;
    database.run(repair).await;
    fresh(commit(&open(&database).await, deposit("a", 5)).await);
}

/// Numbers that sessions keep for later are drawn out of order.
#[tokio::test]
async fn positions_that_are_handed_out_in_blocks_are_refused() {
    let database = installed().await;
    database.run("ALTER SEQUENCE sequor.positions CACHE 20").await;
    let refused = PostgresStore::open(settings(&database)).await.unwrap_err();
    assert!(matches!(refused, OpenError::PositionsUnordered), "{refused}");
    let repair = refused.to_string();
    database.run(repair.rsplit_once("the owner: ").unwrap().1).await;
    fresh(commit(&open(&database).await, deposit("a", 0)).await);
}

#[tokio::test]
async fn another_encoding_is_refused() {
    let database = Database::new().await;
    let name = format!("{}_latin", database.name());
    let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    database.run(&create).await;
    let there = PostgresSettings::new(database.owner().database(&name));
    let refused = install(&there).await.unwrap_err();
    database.run(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
    assert!(matches!(refused, OpenError::Encoding { .. }), "{refused}");
}

#[tokio::test]
async fn a_store_keeps_the_partitions_it_was_made_with() {
    let database = Database::new().await;
    let mut owner = PostgresSettings::new(database.owner());
    owner.partitions = NonZeroU16::MIN;
    install(&owner).await.unwrap();
    database.make_role(BUS, "sequor_app, sequor_system").await;
    owner.partitions = NonZeroU16::new(64).unwrap();
    install(&owner).await.unwrap();
    let store = open(&database).await;
    assert!((1..100).all(|number| store.partition(tenant(number)).get() == 0));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let nowhere = "postgres://bus@127.0.0.1:1/nowhere".parse().unwrap();
    let refused = PostgresStore::open(nowhere).await.unwrap_err();
    assert!(matches!(refused, OpenError::Store(_)), "{refused}");
    let said = refused.to_string();
    assert!(said.contains("database `nowhere` at 127.0.0.1:1: "), "{said}");
    assert!(said.ends_with("is the server running, and is this its host and port?"), "{said}");
}

#[tokio::test]
async fn a_database_that_is_not_there_says_what_to_run() {
    let database = Database::new().await;
    let mut nowhere = PostgresSettings::new(database.owner().database("sequor_test_nodb"));
    nowhere.server = nowhere.server.password("secret");
    let opened = PostgresStore::open(nowhere.clone()).await.unwrap_err();
    for refused in [opened, install(&nowhere).await.unwrap_err()] {
        let said = refused.to_string();
        assert!(said.ends_with("(3D000); create it: CREATE DATABASE sequor_test_nodb"), "{said}");
        assert!(!said.contains("secret") && !said.contains("at line"), "{said}");
    }
}

/// On a server that sequor was never installed on.
#[tokio::test]
async fn an_owner_who_may_not_create_roles_says_what_a_superuser_runs() {
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(missing) => return not_tried(missing),
    };
    let database = Database::on(&cluster.url("postgres")).await;
    let make =
        format!("CREATE ROLE owner LOGIN; ALTER DATABASE {} OWNER TO owner", database.name());
    database.run(&make).await;
    let owner = PostgresSettings::new(database.role("owner"));
    let refused = install(&owner).await.unwrap_err();
    assert!(matches!(&refused, OpenError::RolesMissing { role } if role == "owner"), "{refused}");
    let repair = refused.to_string();
    database.run(repair.rsplit_once("a superuser: ").unwrap().1).await;
    install(&owner).await.unwrap();
    PostgresStore::open(owner).await.unwrap();
}

#[test]
fn settings_are_checked_and_show_no_password() {
    let wrong = "mysql://a/b".parse::<PostgresSettings>();
    assert_eq!(wrong.unwrap_err(), SettingsError::Scheme);
    let settings: PostgresSettings = "postgres://bus:secret@db/x".parse().unwrap();
    assert!(!format!("{settings:?}").contains("secret"));
    let mut settings = settings;
    settings.writers_max = 0;
    let error = settings.check().unwrap_err();
    assert_eq!(error.to_string(), "writers_max is 0; it takes 1 to 16");
}
