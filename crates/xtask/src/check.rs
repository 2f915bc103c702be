//! `cargo xtask check`: the one gate, on a laptop and in CI.

use std::time::Instant;

use anyhow::{Context as _, Result};
use comfy_table::{CellAlignment, Table, presets};

use crate::step::Step;
use crate::workspace::Workspace;
use crate::{test, tidy};

/// The crate whose features users choose from.
const FACADE: &str = "sequor";

/// Run the gate: everything a change must pass, cheapest first
///
/// The order: format, tidy, clippy, rustdoc, test, features. It stops at the first red one;
/// fix that and run it again. Each step prints its command line, so that you can run it alone.
///
///   format    cargo fmt --all --check            (`cargo fmt --all` repairs)
///   tidy      the project's own rules            (`cargo xtask tidy --help` lists them)
///   clippy    all targets and features, warnings denied
///   rustdoc   all crates, warnings denied
///   test      cargo xtask test
///   features  the facade `sequor` with none and with each of its features alone
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Try more seeds in the test step (sets SEQUOR_SLOW=1 for the tests).
    #[arg(long)]
    slow: bool,
}

/// Runs the stages in order, stops at the first red one, and closes with a table of all.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut outcomes = Vec::new();
    let mut result = Ok(());
    for stage in STAGES {
        if result.is_err() {
            outcomes.push((stage.name, None));
            continue;
        }
        println!("\n== {} ==", stage.name);
        let start = Instant::now();
        result = (stage.run)(workspace, arguments)
            .with_context(|| format!("the gate is red at {} ({})", stage.name, stage.advice));
        outcomes.push((stage.name, Some((result.is_ok(), start.elapsed().as_secs_f64()))));
    }
    println!("\n{}", summary(&outcomes));
    result
}

/// One stage of the gate.
struct Stage {
    name: &'static str,
    run: fn(&Workspace, &Arguments) -> Result<()>,
    /// What to do when it is red.
    advice: &'static str,
}

const STAGES: [Stage; 6] = [
    Stage { name: "format", run: format_is_clean, advice: "run `cargo fmt --all`" },
    Stage {
        name: "tidy",
        run: |workspace, _| tidy::run(workspace),
        advice: "each finding says what to do; `cargo xtask tidy` runs this stage alone",
    },
    Stage {
        name: "clippy",
        run: clippy_is_silent,
        advice: "mend the code, or state an exception with `#[expect(…, reason = \"…\")]`",
    },
    Stage { name: "rustdoc", run: docs_build, advice: "mend the links and docs named above" },
    Stage { name: "test", run: tests_pass, advice: "`cargo xtask test` runs this stage alone" },
    Stage {
        name: "features",
        run: each_feature_stands_alone,
        advice: "gate the code with the feature that it needs",
    },
];

fn format_is_clean(workspace: &Workspace, _: &Arguments) -> Result<()> {
    Step::cargo(["fmt", "--all", "--check"]).run(workspace.root())
}

fn clippy_is_silent(workspace: &Workspace, _: &Arguments) -> Result<()> {
    let words = "clippy --workspace --all-targets --all-features -- -D warnings";
    Step::cargo(words.split(' ')).run(workspace.root())
}

fn docs_build(workspace: &Workspace, _: &Arguments) -> Result<()> {
    Step::cargo("doc --workspace --no-deps --all-features".split(' '))
        .with_env("RUSTDOCFLAGS", "-D warnings")
        .run(workspace.root())
}

fn tests_pass(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let arguments = test::Arguments { slow: arguments.slow, ..test::Arguments::default() };
    test::run(workspace, &arguments)
}

fn each_feature_stands_alone(workspace: &Workspace, _: &Arguments) -> Result<()> {
    let bare = ["check", "-p", FACADE, "--no-default-features"];
    Step::cargo(bare).run(workspace.root())?;
    for feature in workspace.features_of(FACADE)? {
        let words = bare.into_iter().chain(["--features", &feature]);
        Step::cargo(words).run(workspace.root())?;
    }
    Ok(())
}

/// A stage's name with whether it was green and its seconds; nothing if it did not run.
type Outcome = (&'static str, Option<(bool, f64)>);

fn summary(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["step", "result", "seconds"]);
    let mut total = 0.0;
    for (name, outcome) in outcomes {
        let (verdict, seconds) = match outcome {
            None => ("not run", String::new()),
            Some((true, seconds)) => ("green", format!("{seconds:.1}")),
            Some((false, seconds)) => ("RED", format!("{seconds:.1}")),
        };
        total += outcome.map_or(0.0, |(_, seconds)| seconds);
        table.add_row([name, verdict, seconds.as_str()]);
    }
    table.add_row(["total", "", format!("{total:.1}").as_str()]);
    if let Some(seconds) = table.column_mut(2) {
        seconds.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn the_summary_names_every_stage_and_its_seconds() {
        let table = summary(&[
            ("format", Some((true, 0.72))),
            ("tidy", Some((false, 12.0))),
            ("clippy", None),
        ]);
        insta::assert_snapshot!(table.trim_fmt(), @"
        step    result   seconds
        format  green        0.7
        tidy    RED         12.0
        clippy  not run
        total               12.7
        ");
    }
}
