//! A backup, restored into a fresh cluster: everything goes on as if nothing had been. Tables that
//! came without their sequence are refused until it is repaired.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use sequor_core::ports::{Committed, ReadLog, Store};
use sequor_core::{Position, StoredEvent, TenantId};
use sequor_postgres::{OpenError, PostgresSettings, PostgresStore, install};
use sequor_testserver::{Cluster, Database};

use crate::support::{
    BUS, checked, commit, deposit, draft, fresh, keyed, not_tried, open, prepare, settings, tenant,
};

/// A server to back up, and a fresh one: what an operator has after a loss.
struct Servers {
    lost: Cluster,
    fresh: Cluster,
}

/// Both for all tests of this process.
static SERVERS: LazyLock<Option<Servers>> = LazyLock::new(|| {
    let started = Cluster::start().and_then(|lost| Ok(Servers { lost, fresh: Cluster::start()? }));
    let servers = started.inspect_err(|missing| not_tried(missing)).ok()?;
    for program in ["pg_dump", "pg_restore", "psql"] {
        if !servers.lost.binaries().program(program).is_file() {
            not_tried(format!("{program} is not among PostgreSQL's programs"));
            return None;
        }
    }
    // Roles belong to a server, so no dump of a database holds them.
    let roles = format!(
        "CREATE ROLE sequor_app; CREATE ROLE sequor_system; CREATE ROLE {BUS} LOGIN;
        GRANT sequor_app, sequor_system TO {BUS}"
    );
    psql(&servers, &servers.fresh.url("postgres"), roles.as_bytes());
    Some(servers)
});

/// What one of PostgreSQL's programs answers to its input.
fn run(servers: &Servers, program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(servers.lost.binaries().program(program))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || to.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    output.stdout
}

fn psql(servers: &Servers, url: &str, sql: &[u8]) {
    run(servers, "psql", &["--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-d", url], sql);
}

/// A store with some history, still on the server that will be lost.
async fn lost(servers: &Servers) -> Database {
    let database = Database::on(&servers.lost.url("postgres")).await;
    prepare(&database).await;
    let store = open(&database).await;
    for version in 0..5 {
        fresh(commit(&store, keyed(&format!("k{version}"), "a", version)).await);
    }
    for number in 2..20 {
        fresh(commit(&store, checked(draft(tenant(number), "b", 0))).await);
    }
    store.close().await;
    database
}

/// Restores plain SQL of some of a database into one on the fresh server.
async fn restored_plainly(servers: &Servers, lost: &Database, but: &str) -> Database {
    let url = servers.lost.url(lost.name());
    let dump = run(servers, "pg_dump", &["-d", &url, but], &[]);
    let restored = Database::on(&servers.fresh.url("postgres")).await;
    psql(servers, &servers.fresh.url(restored.name()), &dump);
    restored
}

/// Restores all of a database, in the format that is made for it.
async fn restored(servers: &Servers, lost: &Database) -> Database {
    let url = servers.lost.url(lost.name());
    let dump = run(servers, "pg_dump", &["-d", &url, "--format=custom"], &[]);
    let restored = Database::on(&servers.fresh.url("postgres")).await;
    let url = servers.fresh.url(restored.name());
    run(servers, "pg_restore", &["-d", &url, "--exit-on-error"], &dump);
    restored
}

async fn read(store: &PostgresStore, tenant: TenantId, after: Position) -> Vec<StoredEvent> {
    store.read_after(store.partition(tenant), after, 1_000).await.unwrap()
}

#[tokio::test]
async fn after_a_restore_keys_replay_and_versions_and_positions_go_on() {
    let Some(servers) = &*SERVERS else { return };
    let lost = lost(servers).await;
    let before = open(&lost).await;
    let restored = restored(servers, &lost).await;
    let store = open(&restored).await;
    assert_eq!(store.epoch(), before.epoch());
    let known = commit(&store, keyed("k4", "a", 4)).await.unwrap();
    let Committed::Known(known) = known else { panic!("{known:?}") };
    let original = commit(&before, keyed("k4", "a", 4)).await.unwrap();
    assert!(matches!(original, Committed::Known(original) if original == known));
    let stale = commit(&store, deposit("a", 4)).await.unwrap_err();
    assert!(stale.to_string().contains('5'), "{stale}");
    let highest = highest_position(&before).await;
    let next = fresh(commit(&store, deposit("a", 5)).await);
    assert!(next.position.unwrap() > highest, "{next:?} is not after {highest}");
}

async fn highest_position(store: &PostgresStore) -> Position {
    let mut highest = Position::START;
    for number in 1..20 {
        let events = read(store, tenant(number), Position::START).await;
        highest = highest.max(events.last().unwrap().position);
    }
    highest
}

#[tokio::test]
async fn a_follower_goes_on_after_a_restore_with_exactly_what_is_new() {
    let Some(servers) = &*SERVERS else { return };
    let lost = lost(servers).await;
    let before = open(&lost).await;
    let all = read(&before, tenant(1), Position::START).await;
    let (half, checkpoint) = (all[all.len() / 2].position, all.last().unwrap().position);
    let restored = restored(servers, &lost).await;
    let store = open(&restored).await;
    assert_eq!(read(&store, tenant(1), Position::START).await, all);
    assert_eq!(read(&store, tenant(1), half).await, all[all.len() / 2 + 1..]);
    assert_eq!(read(&store, tenant(1), checkpoint).await, []);
    for version in 5..8 {
        fresh(commit(&store, deposit("a", version)).await);
    }
    let new = read(&store, tenant(1), checkpoint).await;
    let versions: Vec<u64> = new.iter().map(|event| event.version.get()).collect();
    assert_eq!(versions, [6, 7, 8]);
}

/// The walls are part of the dump, and installing again finds everything done.
#[tokio::test]
async fn after_a_restore_installing_again_changes_nothing() {
    let Some(servers) = &*SERVERS else { return };
    let restored = restored(servers, &lost(servers).await).await;
    let count = "SELECT count(*) FROM pg_policies WHERE schemaname = 'sequor'";
    let policies: i64 =
        sqlx::query_scalar(count).fetch_one(&mut restored.session().await).await.unwrap();
    assert_eq!(policies, 18, "two for each of nine tables");
    let before = open(&restored).await.epoch();
    install(&PostgresSettings::new(restored.owner())).await.unwrap();
    let store = open(&restored).await;
    assert_eq!(store.epoch(), before);
    fresh(commit(&store, deposit("a", 5)).await);
}

#[tokio::test]
async fn a_renewed_epoch_is_shown_from_the_next_open_on() {
    let Some(servers) = &*SERVERS else { return };
    let lost = lost(servers).await;
    let restored = restored(servers, &lost).await;
    restored.run("UPDATE sequor.store SET epoch = gen_random_uuid()").await;
    let (before, after) = (open(&lost).await, open(&restored).await);
    assert_ne!(before.epoch(), after.epoch());
    assert_eq!(before.partition(tenant(1)), after.partition(tenant(1)));
}

/// As a restore does by default: it goes on after errors.
fn restore_carelessly(servers: &Servers, dump: &[u8], url: &str) {
    let mut psql = Command::new(servers.lost.binaries().program("psql"));
    psql.args(["--quiet", "--no-psqlrc", "-d", url]);
    let psql = psql.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut psql = psql.spawn().unwrap();
    psql.stdin.take().unwrap().write_all(dump).unwrap();
    assert!(psql.wait().unwrap().success());
}

/// Roles belong to a server: on one without them, a restore loses what the dump says of them.
#[tokio::test]
async fn a_database_that_was_restored_before_its_roles_is_refused() {
    let Some(servers) = &*SERVERS else { return };
    let (lost, bare) = (lost(servers).await, Cluster::start().unwrap());
    let dump = run(servers, "pg_dump", &["-d", &servers.lost.url(lost.name())], &[]);
    let restored = Database::on(&bare.url("postgres")).await;
    restored.make_role(BUS, "pg_read_all_settings").await;
    restore_carelessly(servers, &dump, &bare.url(restored.name()));
    let refuses = async |what: &str| {
        for settings in [settings(&restored), PostgresSettings::new(restored.owner())] {
            let refused = PostgresStore::open(settings).await.unwrap_err();
            assert!(matches!(refused, OpenError::RestoredWithoutRoles), "{what}: {refused}");
            assert!(refused.to_string().contains("restore it anew"), "{what}: {refused}");
        }
    };
    refuses("without roles").await;
    restored.run("CREATE ROLE sequor_app; CREATE ROLE sequor_system").await;
    refuses("they came too late").await;
    restored.make_role(BUS, "sequor_app, sequor_system").await;
    refuses("they were granted").await;
    // Tables that were granted by hand have no walls yet.
    restored.run("GRANT USAGE ON SCHEMA sequor TO sequor_app, sequor_system").await;
    refuses("rights came back").await;
    let anew = Database::on(&bare.url("postgres")).await;
    psql(servers, &bare.url(anew.name()), &dump);
    fresh(commit(&open(&anew).await, deposit("a", 5)).await);
}

/// What opening refuses with, and what it says to run.
async fn repair(restored: &Database) -> String {
    let refused = PostgresStore::open(settings(restored)).await.unwrap_err();
    assert!(matches!(refused, OpenError::PositionsBehind { .. }), "{refused}");
    refused.to_string().rsplit_once("the owner: ").unwrap().1.to_owned()
}

async fn assert_goes_on(restored: &Database, highest: Position) {
    let store = open(restored).await;
    let next = fresh(commit(&store, deposit("a", 5)).await);
    assert!(next.position.unwrap() > highest, "{next:?} is not after {highest}");
}

#[tokio::test]
async fn tables_without_the_state_of_their_sequence_are_refused_until_it_is_repaired() {
    let Some(servers) = &*SERVERS else { return };
    let lost = lost(servers).await;
    let highest = highest_position(&open(&lost).await).await;
    let but = "--exclude-table-data=sequor.positions";
    let restored = restored_plainly(servers, &lost, but).await;
    restored.run(&repair(&restored).await).await;
    assert_goes_on(&restored, highest).await;
}

/// Opening says to install, installing makes the sequence, and opening says how far to set it.
#[tokio::test]
async fn tables_without_their_sequence_are_refused_until_it_is_repaired() {
    let Some(servers) = &*SERVERS else { return };
    let lost = lost(servers).await;
    let highest = highest_position(&open(&lost).await).await;
    let restored = restored_plainly(servers, &lost, "--exclude-table=sequor.positions").await;
    let refused = PostgresStore::open(settings(&restored)).await.unwrap_err();
    assert!(matches!(refused, OpenError::PositionsMissing), "{refused}");
    assert!(refused.to_string().contains("sequor::postgres::install"), "{refused}");
    install(&PostgresSettings::new(restored.owner())).await.unwrap();
    restored.run(&repair(&restored).await).await;
    assert_goes_on(&restored, highest).await;
}
