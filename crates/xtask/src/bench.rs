//! `cargo xtask bench`: how fast, beside the limit of the same rows written bare.

#[cfg(feature = "bench")]
mod domain;
#[cfg(feature = "bench")]
mod growth;
#[cfg(feature = "bench")]
mod load;
mod peers;
#[cfg(feature = "bench")]
mod postgres;
#[cfg(feature = "bench")]
mod projections;
#[cfg(feature = "bench")]
mod raw;
#[cfg(feature = "bench")]
mod report;
#[cfg(feature = "bench")]
mod rivals;
#[cfg(feature = "bench")]
mod suite;

use anyhow::Result;

use crate::workspace::Workspace;

/// Measures commands per second and latency on each store, beside the same rows written bare
///
/// Ratios within one run mean something; figures of two machines, or of two runs on a shared one,
/// do not compare. Nothing here is a test: no run fails for being slow.
///
/// Examples:
///   cargo xtask bench                       everything, about ten minutes
///   cargo xtask bench --only sqlite         the commands on SQLite and their limits
///   cargo xtask bench --seconds 0.3         a quick look
///   cargo xtask bench --write               everything, into docs/BENCHMARKS.md
///   cargo xtask bench --peers               sequor beside others on both databases, ten minutes
///   cargo xtask bench --peers --only esrs   beside one of them
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// How long each row is measured, in seconds: 2 if not said, and 0.25 with --peers.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Measures only some of it: memory, sqlite, postgres, projections, rivals, replay, growth; or,
    /// with --peers, peers by name.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Measures sequor beside its peers instead, in a workspace of their own that takes minutes to
    /// build.
    #[arg(long)]
    peers: bool,
    /// With --peers: one short round, to see whether everything still runs.
    #[arg(long, requires = "peers")]
    quick: bool,
    /// With --peers: sequor writes no row into the outbox, to see what it costs.
    #[arg(long, requires = "peers")]
    without_outbox: bool,
    /// Writes the tables into their part of docs/BENCHMARKS.md.
    #[arg(long)]
    write: bool,
}

/// The parts of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Commands on the store in memory.
    Memory,
    /// Commands on SQLite, and the same rows written bare.
    Sqlite,
    /// Commands on PostgreSQL, and what each promise costs there.
    Postgres,
    /// Read models behind the commands: how fast they catch up, and how late they are.
    Projections,
    /// Many callers on one aggregate, beside as many on a thousand.
    Rivals,
    /// What a replay costs beside a primary-key read.
    Replay,
    /// What stored keys cost, from a thousand to a million.
    Growth,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds, such as 0.5".to_owned())?;
    if (0.05..=600.0).contains(&seconds) {
        return Ok(seconds);
    }
    Err("0.05 to 600 seconds".to_owned())
}

impl Arguments {
    /// The parts that `--only` names.
    fn parts(&self) -> Result<Vec<Part>> {
        let part = |name: &String| <Part as clap::ValueEnum>::from_str(name, false);
        self.only.iter().map(part).collect::<Result<_, _>>().map_err(|name| {
            anyhow::anyhow!(
                "--only takes memory, sqlite, postgres, projections, rivals, replay and growth: \
                 {name}"
            )
        })
    }
}

/// Runs the benchmark.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    if arguments.peers {
        return peers::run(workspace, arguments);
    }
    arguments.parts()?;
    run_ours(workspace, arguments)
}

#[cfg(feature = "bench")]
fn run_ours(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    suite::run(workspace, arguments)
}

/// In a release build of its own.
#[cfg(not(feature = "bench"))]
fn run_ours(workspace: &Workspace, _: &Arguments) -> Result<()> {
    let cargo = ["run", "--quiet", "--release", "--package", "xtask", "--features", "bench", "--"];
    let own = std::env::args().skip(1);
    crate::step::Step::cargo(cargo.into_iter().map(str::to_owned).chain(own)).run(workspace.root())
}
