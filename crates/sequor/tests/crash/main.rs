//! Kill −9 in the middle of everything, and then every promise still holds.
//!
//! A child executes keyed commands on a SQLite file as fast as it can and prints what was
//! acknowledged; the parent kills it after a random number of acknowledgements, reopens the file,
//! retries everything with the same keys, and audits the file. The seed is printed; set
//! `SEQUOR_SEED` to run the same rounds again, `SEQUOR_SLOW=1` for more rounds.
#![expect(clippy::print_stdout, reason = "a test without the harness speaks for itself")]

mod audit;
mod child;
mod domain;
mod parent;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let Some(job) = child::Job::from_environment() {
        runtime.block_on(child::run(job));
        return;
    }
    if std::env::args().any(|argument| argument == "--list") {
        println!("a_killed_process_loses_and_doubles_nothing: test");
        return;
    }
    println!("\nrunning 1 test");
    runtime.block_on(parent::run());
    println!("test a_killed_process_loses_and_doubles_nothing ... ok");
    println!("\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}
