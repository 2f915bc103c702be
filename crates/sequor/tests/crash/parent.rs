//! The process that kills, retries and audits.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use sequor::CommandId;

use crate::child::{CALLERS, Job};
use crate::{audit, domain};

/// What the child said was done: number → command and output.
type Acknowledged = BTreeMap<u64, (CommandId, i64)>;

pub(crate) async fn run() {
    let mut chance = Chance::from_environment();
    let rounds = if std::env::var_os("SEQUOR_SLOW").is_some() { 500 } else { 60 };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("crash.db");
    create_sums(&path).await;
    let (mut acknowledged, mut in_doubt) = (0, 0);
    for round in 0..rounds {
        let seen = kill_after(&path, round, chance.below(400));
        let service = domain::open(&path).await;
        let (tried, ran_now) = retry(&service, round, &seen).await;
        acknowledged += seen.len();
        in_doubt += tried - seen.len() - ran_now;
        service.store().close().await;
        if round % 10 == 9 {
            audit::run(&path).await;
        }
    }
    println!(
        "{rounds} kills: {acknowledged} commands acknowledged and kept, {in_doubt} committed but \
         not acknowledged, none twice"
    );
}

async fn create_sums(path: &Path) {
    let service = domain::open(path).await;
    let table = "CREATE TABLE sums (account TEXT PRIMARY KEY, cents INTEGER NOT NULL) STRICT";
    service.store().set_up(table).await.expect("a table");
    service.store().close().await;
}

/// Lets a child work until it has acknowledged so many commands, and kills it (SIGKILL).
fn kill_after(path: &Path, round: u64, count: u64) -> Acknowledged {
    let job = Job { path: path.to_owned(), round };
    let mut child = job.spawn().expect("this program starts again");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut seen = Acknowledged::new();
    for line in lines.by_ref().take(usize::try_from(count).expect("small")) {
        acknowledge(&mut seen, &line.expect("text"));
    }
    child.kill().expect("killed");
    // What was in the pipe when the child died was acknowledged too.
    for line in lines.map_while(Result::ok) {
        acknowledge(&mut seen, &line);
    }
    let status = child.wait().expect("gone");
    assert!(!status.success(), "the child ended by itself: {status}");
    seen
}

/// Takes in a line; the last one may have been cut off by the kill.
fn acknowledge(seen: &mut Acknowledged, line: &str) {
    let mut words = line.split(' ');
    let word = (words.next(), words.next(), words.next());
    let (Some(number), Some(id), Some(output)) = word else { return };
    let (Ok(number), Ok(id), Ok(output)) = (number.parse(), id.parse(), output.parse()) else {
        return;
    };
    seen.insert(number, (CommandId(id), output));
}

/// Retries every command that the child may have started; answers how many, and how many ran now.
async fn retry(
    service: &sequor::CommandService<sequor::sqlite::SqliteStore>,
    round: u64,
    seen: &Acknowledged,
) -> (usize, usize) {
    let started = seen.keys().next_back().map_or(0, |last| last + 1) + CALLERS;
    let mut ran_now = 0;
    for number in 0..started {
        let receipt = domain::execute(service, round, number).await.expect("a retry is answered");
        if let Some((command_id, output)) = seen.get(&number) {
            assert!(receipt.is_replayed(), "acknowledged command {round}-{number} ran again");
            assert_eq!(receipt.command_id, *command_id, "command {round}-{number} was replaced");
            assert_eq!(
                receipt.output,
                Some(*output),
                "command {round}-{number} changed its output"
            );
        }
        ran_now += usize::from(receipt.is_executed());
    }
    (usize::try_from(started).expect("small"), ran_now)
}

/// Reproducible chance (xorshift).
struct Chance(u64);

impl Chance {
    fn from_environment() -> Self {
        let given = std::env::var("SEQUOR_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) | 1);
        println!("SEQUOR_SEED={seed} cargo test -p sequor --all-features --test crash");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
