//! Kill −9 in the middle of everything, and then every promise still holds.
//!
//! A child executes keyed commands as fast as it can and prints what was acknowledged. The parent
//! kills it, or the server, or both, after a random number of acknowledgements, retries everything
//! with the same keys, and audits what is stored: by the store's own audit, and by SQL. The seed is
//! printed; set `SEQUOR_SEED` to run the same rounds again, `SEQUOR_SLOW=1` for more rounds. A word in
//! the command line runs the tests with that word in their names.
#![expect(clippy::print_stdout, reason = "a test without the harness speaks for itself")]

mod bank;
mod chance;
mod child;
mod domain;
mod retry;
mod working;

mod postgres;
mod sqlite;

use sequor::audit::AuditSettings;
use sequor::ports::Audit;

const TESTS: [&str; 4] = [
    "on_sqlite_a_killed_client_loses_and_doubles_nothing",
    "on_postgres_a_killed_client_loses_and_doubles_nothing",
    "on_postgres_a_killed_server_loses_and_doubles_nothing",
    "on_postgres_both_killed_at_once_lose_and_double_nothing",
];

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let Some(job) = child::Job::from_environment() {
        runtime.block_on(work(job));
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |test: &&str| words.is_empty() || words.iter().any(|word| test.contains(*word));
    let wanted: Vec<_> = TESTS.into_iter().filter(is_wanted).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        wanted.iter().for_each(|test| println!("{test}: test"));
        return;
    }
    println!("\nrunning {} tests", wanted.len());
    let mut ground = None;
    for test in &wanted {
        runtime.block_on(run(test, &mut ground));
        println!("test {test} ... ok");
    }
    println!(
        "\ntest result: ok. {} passed; 0 failed; 0 ignored; 0 measured; {} filtered out",
        wanted.len(),
        TESTS.len() - wanted.len()
    );
}

async fn run(test: &str, ground: &mut Option<postgres::Ground>) {
    let mut chance = chance::Chance::from_environment();
    if test.starts_with("on_sqlite") {
        return sqlite::run(&mut chance).await;
    }
    let ground = match ground {
        Some(ground) => ground,
        None => ground.insert(postgres::Ground::new().await),
    };
    postgres::run(test, &mut chance, ground).await;
}

/// The child's part.
async fn work(job: child::Job) {
    let child::Job { place, round } = job;
    match place.strip_prefix("sqlite:") {
        Some(path) => child::run(sqlite::open(path.as_ref()).await, round).await,
        None => child::run(postgres::open(&place).await, round).await,
    }
}

/// What a store's own audit finds is printed.
async fn assert_clean(store: &impl Audit) {
    let report = store.audit(AuditSettings::default()).await.expect("an audit");
    assert!(report.is_clean(), "the audit: {report}");
}

/// How many rounds to run.
fn rounds(few: u64) -> u64 {
    if std::env::var_os("SEQUOR_SLOW").is_some() { few * 8 } else { few }
}
