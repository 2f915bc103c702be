//! How fast sequor is beside others of its kind.
//!
//! *For:* `cargo xtask bench --peers`: the same work, in the same minutes, on the same servers.
//! *Never:* a part of the workspace; nothing that a user of sequor builds. It has a lock file of its
//! own, since what others need would get into sequor's.
//! *Start here:* `matrix.rs`, which says what is measured in which order; `peer.rs` is what each
//! system must be able to do, `peers/` how each one does it.

#![expect(clippy::print_stdout, reason = "a command line speaks on stdout")]

mod matrix;

mod peer;
mod peers;

mod cpu;
mod load;
mod stage;

mod aims;
mod limit;
mod report;

use std::process::ExitCode;

use clap::Parser;

/// Measures sequor beside its peers: `cargo xtask bench --peers` runs it in release mode.
///
/// Ratios within one run mean something; figures of two machines, or of two runs on a shared one,
/// do not compare.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench --peers", verbatim_doc_comment)]
struct Arguments {
    /// How long each row is measured, in seconds; each is measured three times.
    #[arg(long, default_value_t = 0.25, value_parser = seconds)]
    seconds: f64,
    /// Measures only these beside sequor, by name, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// sequor writes no row into the outbox: what does it cost?
    #[arg(long)]
    without_outbox: bool,
    /// One round of a tenth of a second: does it all still run?
    #[arg(long)]
    quick: bool,
    /// Writes the tables into their section of docs/BENCHMARKS.md.
    #[arg(long)]
    write: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds, such as 0.5".to_owned())?;
    if (0.05..=600.0).contains(&seconds) {
        return Ok(seconds);
    }
    Err("0.05 to 600 seconds".to_owned())
}

fn main() -> ExitCode {
    match matrix::run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}
