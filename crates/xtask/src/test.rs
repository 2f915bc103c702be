//! `cargo xtask test`: every test and doctest, and one closing line that counts them.

use std::fmt;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::postgres::Postgres;
use crate::step::Step;
use crate::workspace::Workspace;

/// Run every test and doctest of the workspace, with all features
///
/// Needs Rust, a C compiler, and PostgreSQL 15 or newer: its programs, not a running server. A
/// private server is started for the tests and is gone afterwards; root on Debian gets the programs
/// installed if they are missing. With DATABASE_URL set, the tests use that server instead; its
/// user must be allowed to create databases and roles. `-p sequor-core` and the like need none.
/// All test binaries run even if one fails; the last line adds up all counts.
///
/// Examples:
///   cargo xtask test                                everything
///   cargo xtask test -- stale_version               only tests with this in their name
///   cargo xtask test -- -p sequor-core              only one crate
///   cargo xtask test -- stale -- --nocapture        and show what they print
///   cargo xtask test --slow                         more seeds
#[derive(Debug, Default, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Try more seeds (sets SEQUOR_SLOW=1 for the tests).
    #[arg(long)]
    pub(crate) slow: bool,
    /// Handed to `cargo test` as they are: a name, `-p <crate>`, `-- --nocapture`, …
    #[arg(last = true)]
    pub(crate) rest: Vec<String>,
}

/// Runs the tests and closes with their counts, red or green.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    let postgres = Postgres::for_tests(&arguments.rest)?;
    let mut step = step(arguments);
    if let Some(postgres) = &postgres {
        println!("{postgres}");
        step = postgres.hand_to(step);
    }
    let mut counts = Counts::default();
    let result = step.run_watched(workspace.root(), |line| counts.add(line));
    let verdict = if result.is_ok() { "ok" } else { "FAILED" };
    let seconds = start.elapsed().as_secs_f64();
    println!("\ntest result: {verdict}. {counts}; finished in {seconds:.1} s");
    result.context("the tests are red (run a failing one alone: `cargo xtask test -- <its name>`)")
}

/// The tests that ran, added up over all test binaries and doctests.
#[derive(Debug, Default)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
    filtered_out: u64,
    binaries: u64,
}

impl Counts {
    /// Adds the numbers of one closing line of a test binary; every other line is left alone.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        self.binaries += 1;
        for part in result.split([';', '.']) {
            let Some((number, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                "filtered out" => self.filtered_out += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed; {} failed; {} ignored; {} filtered out; in {} test binaries and doctest runs",
            self.passed, self.failed, self.ignored, self.filtered_out, self.binaries
        )
    }
}

fn step(arguments: &Arguments) -> Step {
    let mut words = vec!["test", "--all-features", "--no-fail-fast"];
    if !names_a_package(&arguments.rest) {
        words.push("--workspace");
    }
    words.extend(arguments.rest.iter().map(String::as_str));
    let step = Step::cargo(words);
    if arguments.slow { step.with_env("SEQUOR_SLOW", "1") } else { step }
}

fn names_a_package(rest: &[String]) -> bool {
    !packages(rest).is_empty()
}

/// The packages that the arguments name: `-p a`, `-pa`, `--package a`, `--package=a`.
pub(crate) fn packages(rest: &[String]) -> Vec<&str> {
    let mut packages = Vec::new();
    let mut words = rest.iter().map(String::as_str).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--package").or_else(|| word.strip_prefix("-p"));
        match option {
            None => {}
            Some("") => packages.extend(words.next()),
            Some(name) => packages.push(name.trim_start_matches('=')),
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Counts, packages, step};

    #[test]
    fn counts_of_all_binaries_are_added_up() {
        let mut counts = Counts::default();
        for line in [
            "running 3 tests\n",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.05s\n",
            "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s\n",
        ] {
            counts.add(line);
        }
        insta::assert_snapshot!(counts, @"7 passed; 1 failed; 1 ignored; 2 filtered out; in 2 test binaries and doctest runs");
    }

    #[test]
    fn without_arguments_the_whole_workspace_is_tested() {
        insta::assert_snapshot!(step(&Arguments::default()), @"cargo test --all-features --no-fail-fast --workspace");
    }

    #[test]
    fn a_named_package_narrows_the_run() {
        let arguments = Arguments {
            slow: true,
            rest: ["-p", "sequor-core", "--", "-p"].map(Into::into).into(),
        };
        insta::assert_snapshot!(step(&arguments), @"SEQUOR_SLOW=1 cargo test --all-features --no-fail-fast -p sequor-core -- -p");
    }

    #[test]
    fn packages_are_named_in_four_ways() {
        let rest = ["-p", "a", "-pb", "name", "--package", "c", "--package=d", "--", "-p", "e"];
        assert_eq!(packages(&rest.map(Into::into)), ["a", "b", "c", "d"]);
    }
}
