//! What is measured, and in which order.

use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use crate::load::{Figure, Load, Work};
use crate::peer::System;
use crate::report::{Report, Row};
use crate::stage::{Disk, Network, PostgresStage, Stage, meet_accounts};
use crate::{Arguments, limit, peers};

const LOADS: [Load; 7] = [
    Load { work: Work::Create, callers: 1 },
    Load { work: Work::Create, callers: 8 },
    Load { work: Work::Create, callers: 32 },
    Load { work: Work::Deposit, callers: 1 },
    Load { work: Work::Deposit, callers: 8 },
    Load { work: Work::Deposit, callers: 32 },
    Load { work: Work::Hot, callers: 32 },
];

/// For sequor and the fastest of the others only.
const CROWD: Load = Load { work: Work::Deposit, callers: 256 };

const READING: &str = "Written by `cargo xtask bench --peers --write`. The same work by each \
library as its documents show it, through a pool of 8 connections that are not tested before use, \
with fsync on. *Create* opens a new account; *deposit* pays into one of 1,000 accounts, in no \
order, that have 10 events each; *one hot account* is the same account for all. Each figure is the \
median of three rounds, in which the systems take turns; each measurement has a fresh copy of the \
same filled database and a warm-up, in which each account is paid into once: sequor and evento \
remember accounts, the others load them each time. A conflict is followed by another try at once, and the \
caller's time goes on.

For each command sequor writes a command row with what a replay answers, an idempotency key, the \
event with its position in the log, and the version of the account. The others write the event, and \
es-entity a row for each new account.

Client and server share two cores, with others as well, so commands a second do not compare with \
those of another machine or hour, and their ratios suffer while the cores are busy: whoever has more \
sessions gets more of them. *CPU µs* is the processor time of client and server for each command \
(the network's included, where there is one), which hardly depends on that.";

/// Measures what was asked for, and prints and writes the tables.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let bench = Bench::new(arguments)?;
    let mut report = Report::default();
    report.say("## Beside its peers");
    report.say(READING);
    report.say(&about(&bench.postgres));
    let runtime = tokio::runtime::Runtime::new()?;
    for disk in [Disk::Own, Disk::Slow] {
        runtime.block_on(bench.postgres(disk, &mut report))?;
    }
    bench.bar.finish_and_clear();
    if arguments.write {
        report.write()?;
    }
    Ok(())
}

fn about(systems: &[&'static dyn System]) -> String {
    let lines = systems.iter().map(|one| format!("* {}: {}.", one.name(), one.about()));
    lines.collect::<Vec<_>>().join("\n")
}

struct Bench {
    postgres: Vec<&'static dyn System>,
    rounds: usize,
    duration: Duration,
    bar: ProgressBar,
}

impl Bench {
    fn new(arguments: &Arguments) -> Result<Self> {
        let only = &arguments.only;
        let is_known = |wanted: &str| peers::POSTGRES.iter().any(|one| one.name() == wanted);
        let unknown: Vec<_> = only.iter().filter(|name| !is_known(name)).collect();
        ensure!(unknown.is_empty(), "nobody is called {unknown:?}");
        let is_wanted = |name| only.is_empty() || only.iter().any(|wanted| wanted == name);
        let postgres = peers::POSTGRES.iter();
        let postgres = postgres.filter(|one| one.name() == "sequor" || is_wanted(one.name()));
        let postgres: Vec<_> = postgres.copied().collect();
        let (rounds, seconds) = if arguments.quick { (1, 0.25) } else { (3, arguments.seconds) };
        // Two disks and two networks; the crowd is two systems more.
        let steps = 4 * rounds * (LOADS.len() * postgres.len() + 2);
        let style = "  {spinner} {elapsed} of about {duration} {wide_bar} {msg}";
        let bar = ProgressBar::new(u64::try_from(steps)?)
            .with_style(ProgressStyle::with_template(style)?);
        bar.enable_steady_tick(Duration::from_millis(500));
        Ok(Self { postgres, rounds, duration: Duration::from_secs_f64(seconds), bar })
    }

    /// Everything on PostgreSQL with one kind of disk.
    async fn postgres(&self, disk: Disk, report: &mut Report) -> Result<()> {
        let stage = PostgresStage::start(disk)?;
        self.fill(&stage, &self.postgres).await?;
        for network in [Network::Direct, Network::Slow] {
            let rows = self.rows(&stage, network, &self.postgres).await?;
            self.bar.suspend(|| report.add(title(disk, network), &rows));
            if network == Network::Direct {
                self.bar.set_message("pgbench");
                let limits = limit::measure(&stage, self.postgres.first(), self.duration).await;
                self.bar.suspend(|| match limits {
                    Ok(limits) => limit::tell(report, &limits, &rows),
                    Err(error) => eprintln!("no limit: {error:#}"),
                });
            }
        }
        Ok(())
    }

    async fn fill(&self, stage: &dyn Stage, systems: &[&'static dyn System]) -> Result<()> {
        for system in systems {
            self.bar.set_message(format!("filling {}", system.name()));
            stage.fill(*system).await?;
        }
        Ok(())
    }

    /// Every load, and the crowd on the fastest two.
    async fn rows(
        &self,
        stage: &dyn Stage,
        network: Network,
        systems: &[&'static dyn System],
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for load in LOADS {
            rows.push(self.row(stage, network, (load, systems)).await?);
        }
        let crowd = fastest_two(&rows, systems);
        rows.push(self.row(stage, network, (CROWD, &crowd)).await?);
        Ok(rows)
    }

    /// One load on each system, who take turns.
    async fn row(
        &self,
        stage: &dyn Stage,
        network: Network,
        (load, systems): (Load, &[&'static dyn System]),
    ) -> Result<Row> {
        let server = stage.server()?;
        let mut seen: Vec<Vec<Figure>> = vec![Vec::new(); systems.len()];
        for _ in 0..self.rounds {
            for (seen, system) in seen.iter_mut().zip(systems) {
                let what = crate::report::load(load);
                self.bar.set_message(format!("{}: {what}", system.name()));
                let accounts = system.open(&stage.copy(*system, network).await?).await?;
                if load.work == Work::Deposit {
                    meet_accounts(&accounts).await?;
                }
                load.drive(&accounts, server, self.duration / 4).await?;
                seen.push(load.drive(&accounts, server, self.duration).await?);
                accounts.close().await;
                self.bar.inc(1);
            }
        }
        let names = systems.iter().map(|system| system.name());
        Ok(Row { load, figures: names.zip(seen.into_iter().map(median)).collect() })
    }
}

fn title(disk: Disk, network: Network) -> &'static str {
    match (disk, network) {
        (Disk::Own, Network::Direct) => "PostgreSQL, direct, this machine's disk",
        (Disk::Own, Network::Slow) => "PostgreSQL, 1 ms a round trip, this machine's disk",
        (Disk::Slow, Network::Direct) => "PostgreSQL, direct, 1 ms more a flush",
        (Disk::Slow, Network::Slow) => "PostgreSQL, 1 ms a round trip, 1 ms more a flush",
    }
}

/// The first system, and the one that did most deposits for the most callers beside it.
fn fastest_two(rows: &[Row], systems: &[&'static dyn System]) -> Vec<&'static dyn System> {
    let deposits = rows.iter().rev().find(|row| row.load.work == Work::Deposit);
    let others = deposits.into_iter().flat_map(|row| row.figures.iter().skip(1));
    let best = others.max_by(|one, other| one.1.per_second.total_cmp(&other.1.per_second));
    let best = best.map(|(name, _)| *name);
    let is_wanted = |system: &&'static dyn System| Some(system.name()) == best;
    systems.iter().take(1).chain(systems.iter().filter(|one| is_wanted(one))).copied().collect()
}

/// The middle one by throughput, with its latencies, and the middle one by processor time;
/// conflicts and errors are those of all.
fn median(mut figures: Vec<Figure>) -> Figure {
    let conflicts = figures.iter().map(|figure| figure.conflicts).sum();
    let errors = figures.iter().map(|figure| figure.errors).sum();
    figures.sort_by_key(|figure| figure.cpu);
    let middle = figures.len() / 2;
    let cpu = figures.get(middle).copied().unwrap_or_default().cpu;
    figures.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    Figure { conflicts, errors, cpu, ..figures.get(middle).copied().unwrap_or_default() }
}
