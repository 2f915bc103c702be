//! The limit: PostgreSQL's own load generator calls the function that writes a batch.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::peer::System;
use crate::report::{Report, Row, load, rate, table};
use crate::stage::{COPY, Network, PostgresStage, Stage as _};

const CLIENTS: [u32; 3] = [1, 2, 8];

/// Commands in a batch.
const BATCH: u32 = 50;

/// Batches of 50 deposits a second by so many clients, each on accounts of its own.
#[derive(Debug)]
pub(crate) struct Limit {
    clients: u32,
    commands_per_second: f64,
}

/// Measures on a copy of sequor's filled database, without the network.
pub(crate) async fn measure(
    stage: &PostgresStage,
    ours: Option<&&'static dyn System>,
    duration: Duration,
) -> Result<Vec<Limit>> {
    let ours = ours.context("sequor is measured always")?;
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("limit.sql");
    std::fs::write(&script, include_str!("limit.sql"))?;
    let mut limits = Vec::new();
    for clients in CLIENTS {
        stage.copy(*ours, Network::Direct).await?;
        let cluster = stage.cluster();
        let mut pgbench = Command::new(cluster.binaries().program("pgbench"));
        pgbench.args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--username=postgres"]);
        pgbench.arg(format!("--client={clients}")).arg(format!("--define=clients={clients}"));
        pgbench.arg(format!("--time={}", duration.as_secs().max(1)));
        pgbench.arg(format!("--port={}", cluster.port())).arg("--host=127.0.0.1");
        pgbench.arg("--file").arg(&script).arg(COPY);
        let output = pgbench.output().context("cannot start pgbench")?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "pgbench failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let per_second = said.lines().find_map(|line| line.strip_prefix("tps = "));
        let per_second = per_second.and_then(|rest| rest.split(' ').next());
        let batches: f64 = per_second.context("pgbench tells no rate")?.parse()?;
        limits.push(Limit { clients, commands_per_second: batches * f64::from(BATCH) });
    }
    Ok(limits)
}

/// Adds a table: what sequor reaches of it.
pub(crate) fn tell(report: &mut Report, limits: &[Limit], rows: &[Row]) {
    let highest = limits.iter().map(|limit| limit.commands_per_second).fold(0.0, f64::max);
    let limits = limits.iter().map(|limit| {
        let clients = if limit.clients == 1 { "client" } else { "clients" };
        let what = format!("pgbench, 50 deposits a statement, {} {clients}", limit.clients);
        (what, limit.commands_per_second)
    });
    let ours = rows.iter().filter_map(|row| {
        let (name, figure) = row.figures.first()?;
        Some((format!("{name}, {}", load(row.load)), figure.per_second))
    });
    let body = limits.chain(ours).map(|(what, per_second)| {
        vec![what, format!("{:.2} ×", per_second / highest), rate(per_second)]
    });
    report.say(
        "The limit: pgbench calls the function with which sequor commits, fifty deposits in a \
         prepared statement, and reads the versions they expect in the same statement.",
    );
    let head = vec!["what", "of the limit", "commands /s"];
    report.say(&table(head, body.collect()).to_string());
}
