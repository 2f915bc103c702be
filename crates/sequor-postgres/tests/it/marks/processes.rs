//! Writers that stand still, or are gone, between drawing a position and the commit: as a process of
//! the server, and as a process of ours. Whoever waits for them is a reader of their partition.
//!
//! A server that has a process which stands still drops no databases, so each test has a server of
//! its own, and says so where it cannot have one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use sequor_core::ports::{ReadLog, Store, Transaction};
use sequor_core::{Commit, Position, StoreError, TenantId};
use sequor_postgres::{PostgresSettings, PostgresStore};
use sequor_testserver::{Cluster, Database};
use tokio::time::{Instant, interval, timeout};

use super::{hasty, held, ids_after, tenants};
use crate::support::{BUS, checked, commit, draft, fresh, keyed, not_tried, open, prepare, tenant};

/// How long anything may take that somebody else has to do.
const LIMIT: Duration = Duration::from_secs(60);
/// In which the child is told which database to work on.
const CHILD: &str = "SEQUOR_TEST_WRITER";

/// A server with sequor's tables. Dropped from top to bottom.
struct Ground {
    database: Database,
    _cluster: Cluster,
}

impl Ground {
    async fn new() -> Option<Self> {
        let cluster = match Cluster::start() {
            Ok(cluster) => cluster,
            Err(missing) => {
                not_tried(missing);
                return None;
            }
        };
        let database = Database::on(&cluster.url("postgres")).await;
        prepare(&database).await;
        Some(Self { database, _cluster: cluster })
    }
}

/// A process that stands still as long as this lives.
struct Still(u32);

impl Still {
    async fn new(pid: u32) -> Self {
        assert!(signal("STOP", pid));
        let still = Self(pid);
        let mut look = interval(Duration::from_millis(5));
        let stands = async {
            while !state_of(pid).starts_with('T') {
                look.tick().await;
            }
        };
        timeout(LIMIT, stands).await.unwrap();
        still
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        signal("CONT", self.0);
    }
}

/// Whether the process was there, and ours to signal.
fn signal(name: &str, pid: u32) -> bool {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    sent.is_ok_and(|sent| sent.success())
}

/// `T` when it stands still.
fn state_of(pid: u32) -> String {
    let told = Command::new("ps").args(["-o", "state=", "-p", &pid.to_string()]).output().unwrap();
    String::from_utf8_lossy(&told.stdout).trim().to_owned()
}

/// Ten commits of others, in the writer's partition and in another one; then nobody but readers of
/// the writer's partition has been held up.
async fn assert_only_its_readers_wait(ground: &Ground, store: &PostgresStore) -> TenantId {
    let (same, other) = tenants(store);
    for version in 0..10 {
        for (tenant, id) in [(same, "same"), (other, "other")] {
            let one = checked(draft(tenant, id, version));
            timeout(LIMIT, async { fresh(commit(store, one).await) }).await.unwrap();
        }
    }
    let reader = hasty(&ground.database).await;
    assert_eq!(ids_after(&reader, other, Position::START).await, ["other"; 10]);
    assert_eq!(ids_after(&reader, same, Position::START).await, [""; 0]);
    other
}

/// Follows a partition from its start until so many events were there, whatever is in the way.
async fn ids_when(store: &PostgresStore, tenant: TenantId, count: usize) -> Vec<String> {
    let (until, mut look) = (Instant::now() + LIMIT, interval(Duration::from_millis(5)));
    let (mut ids, mut after) = (Vec::new(), Position::START);
    while ids.len() < count {
        assert!(Instant::now() < until, "too slow: {ids:?}");
        match store.read_after(store.partition(tenant), after, 1_000).await {
            Ok(page) => {
                for event in page {
                    assert!(event.position > after);
                    after = event.position;
                    ids.push(event.stream.id.to_string());
                }
            }
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
        look.tick().await;
    }
    ids
}

/// The writer's event, and then those that others have committed meanwhile.
fn first_and_ten(first: &str) -> Vec<String> {
    std::iter::once(first).chain(["same"; 10]).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_that_stands_still_holds_up_readers_of_its_partition_only() {
    let Some(ground) = Ground::new().await else { return };
    let (store, early) = (open(&ground.database).await, hasty(&ground.database).await);
    let mut writer = held(&store, tenant(1), "still").await;
    let pid: i32 =
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(writer.connection()).await.unwrap();
    let still = Still::new(pid.try_into().unwrap()).await;
    let committing = tokio::spawn(writer.commit());
    let other = assert_only_its_readers_wait(&ground, &store).await;
    assert_eq!(ids_after(&early, tenant(1), Position::START).await, [""; 0]);
    assert!(!committing.is_finished());
    drop(still);
    timeout(LIMIT, committing).await.unwrap().unwrap().unwrap();
    assert_eq!(ids_when(&early, tenant(1), 11).await, first_and_ten("still"));
    assert_eq!(ids_when(&store, tenant(1), 11).await, first_and_ten("still"));
    assert_eq!(ids_after(&early, other, Position::START).await, ["other"; 10]);
}

/// The server starts anew then, as after any crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_that_is_killed_is_not_waited_for_any_more() {
    let Some(ground) = Ground::new().await else { return };
    let (store, reader) = (open(&ground.database).await, open(&ground.database).await);
    let mut writer = held(&store, tenant(1), "killed").await;
    let pid: i32 =
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(writer.connection()).await.unwrap();
    assert_only_its_readers_wait(&ground, &store).await;
    assert!(signal("KILL", pid.try_into().unwrap()));
    assert_eq!(ids_when(&reader, tenant(1), 10).await, ["same"; 10]);
    assert!(matches!(writer.commit().await, Err(StoreError::Unknown | StoreError::Unavailable(_))));
    commit_somehow(&store, keyed("next", "next", 0)).await;
    let read = ids_when(&reader, tenant(1), 11).await;
    assert_eq!(read.last().unwrap(), "next");
}

/// As a caller does whose connection was lost: again with the same key.
async fn commit_somehow(store: &PostgresStore, one: Commit) {
    let (until, mut look) = (Instant::now() + LIMIT, interval(Duration::from_millis(5)));
    loop {
        look.tick().await;
        match commit(store, one.clone()).await {
            Ok(_) => return,
            Err(StoreError::Unavailable(_) | StoreError::Unknown) if Instant::now() < until => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A process of ours that has drawn a position, and commits when it is told to. Gone with this.
struct Writer {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Writer {
    fn start(ground: &Ground) -> Self {
        let (port, name) = (ground.database.owner().get_port(), ground.database.name());
        let url = format!("postgres://{BUS}@127.0.0.1:{port}/{name}");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "marks::processes::what_a_child_does", "--nocapture"])
            .env(CHILD, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut writer = Self { child, said };
        writer.wait_for("drawn");
        writer
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(word) {
            line.clear();
            assert_ne!(
                self.said.read_line(&mut line).unwrap(),
                0,
                "the child ended before: {word}"
            );
        }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{word}").unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// No test of its own: a test starts it as another process.
#[tokio::test]
async fn what_a_child_does() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let settings: PostgresSettings = url.parse().unwrap();
    let store = PostgresStore::open(settings).await.unwrap();
    let writer = held(&store, tenant(1), "child").await;
    println!("\ndrawn");
    // Ends as well when whoever has started it is gone.
    let mut order = String::new();
    std::io::stdin().read_line(&mut order).unwrap();
    if order.trim_end() == "commit" {
        writer.commit().await.unwrap();
        println!("\ncommitted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_that_stands_still_holds_up_readers_of_its_partition_only() {
    let Some(ground) = Ground::new().await else { return };
    let store = open(&ground.database).await;
    let mut writer = Writer::start(&ground);
    let still = Still::new(writer.child.id()).await;
    writer.tell("commit");
    assert_only_its_readers_wait(&ground, &store).await;
    drop(still);
    writer.wait_for("committed");
    assert_eq!(ids_when(&store, tenant(1), 11).await, first_and_ten("child"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_that_is_killed_is_not_waited_for_any_more() {
    let Some(ground) = Ground::new().await else { return };
    let store = open(&ground.database).await;
    let writer = Writer::start(&ground);
    let still = Still::new(writer.child.id()).await;
    assert_only_its_readers_wait(&ground, &store).await;
    // Killed while it stands still, and so without a word to the server.
    assert!(signal("KILL", writer.child.id()));
    assert_eq!(ids_when(&store, tenant(1), 10).await, ["same"; 10]);
    drop(still);
}
