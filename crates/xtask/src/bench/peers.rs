//! `cargo xtask bench --peers`: the workspace of its own that measures sequor beside its peers.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use sequor_testserver::Cluster;

use super::Arguments;
use crate::step::Step;
use crate::workspace::Workspace;

/// From here to its end docs/BENCHMARKS.md belongs to the peers; crates/sequor-peers writes it.
#[cfg(any(feature = "bench", test))]
const MARK: &str = "<!-- peers -->";

/// Builds and runs it.
pub(super) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    // One of the peers asks a database about its queries while it is compiled.
    let cluster = Cluster::start()?;
    let tables = workspace.root().join("crates/sequor-peers/src/peers/es_entity.sql");
    let mut psql = Command::new(cluster.binaries().program("psql"));
    psql.args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--file"]).arg(tables);
    let status = psql.arg(cluster.url("postgres")).status().context("cannot start psql")?;
    ensure!(status.success(), "psql failed with {status}");
    let cargo = ["run", "--quiet", "--release", "--features", "es-entity", "--manifest-path"];
    let cargo = cargo.into_iter().map(str::to_owned);
    let program = ["crates/sequor-peers/Cargo.toml", "--"].map(str::to_owned);
    Step::cargo(cargo.chain(program).chain(forwarded(arguments)))
        .with_passing_env("DATABASE_URL", &cluster.url("postgres"))
        .run(workspace.root())
}

/// The peers' part of a page, with the empty line before it; nothing if there is none.
#[cfg(any(feature = "bench", test))]
pub(super) fn section(page: &str) -> String {
    page.find(MARK)
        .map_or_else(String::new, |start| format!("\n{}", page.get(start..).unwrap_or_default()))
}

fn forwarded(arguments: &Arguments) -> Vec<String> {
    let seconds = arguments.seconds.iter().map(|seconds| format!("--seconds={seconds}"));
    let only = arguments.only.iter().map(|name| format!("--only={name}"));
    let flags = [
        (arguments.quick, "--quick"),
        (arguments.without_outbox, "--without-outbox"),
        (arguments.write, "--write"),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.to_owned());
    seconds.chain(only).chain(set).collect()
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn the_peers_part_of_the_page_is_kept() {
        let page = "# Benchmarks\n\n| table |\n\n<!-- peers -->\n\n## Beside its peers\n";
        assert_eq!(section(page), "\n<!-- peers -->\n\n## Beside its peers\n");
        assert_eq!(section("# Benchmarks\n"), "");
    }
}
