//! The project's own automation, run as `cargo xtask`.
//!
//! For: one command that runs the tests, one that is the gate, and the tidy tests behind it.
//! Never: anything a user of the library needs.
//! Start at [`check`], the gate, which shows all the other pieces in order.

#![expect(clippy::print_stdout, reason = "a command line speaks on stdout")]

mod bench;
mod check;
mod postgres;
mod step;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Everything a contributor runs, on a laptop and in CI alike.
///
/// New here? `cargo xtask test` runs every test and doctest, and brings up what they need.
/// Before you hand in a change, run `cargo xtask check`: it is the same gate CI runs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", verbatim_doc_comment)]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// The commands, in the order in which a newcomer meets them.
#[derive(Debug, Subcommand)]
enum Command {
    Test(test::Arguments),
    Check(check::Arguments),
    Tidy(tidy::Arguments),
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let workspace = Workspace::load()?;
    match cli.command {
        Command::Test(arguments) => test::run(&workspace, &arguments),
        Command::Check(arguments) => check::run(&workspace, &arguments),
        Command::Tidy(tidy::Arguments {}) => tidy::run(&workspace),
        Command::Bench(arguments) => bench::run(&workspace, &arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
