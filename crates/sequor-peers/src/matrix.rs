//! What is measured, and in which order.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use crate::load::{Figure, Load, Work};
use crate::peer::System;
use crate::peers::Outbox;
use crate::report::{Report, Row};
use crate::stage::{Disk, Network, PostgresStage, SqliteStage, Stage, meet_accounts};
use crate::{Arguments, aims, limit, peers};

const LOADS: [Load; 8] = [
    Load { work: Work::Create, callers: 1 },
    Load { work: Work::Create, callers: 8 },
    Load { work: Work::Create, callers: 32 },
    Load { work: Work::Deposit, callers: 1 },
    Load { work: Work::Deposit, callers: 8 },
    Load { work: Work::Deposit, callers: 32 },
    Load { work: Work::Cold, callers: 1 },
    Load { work: Work::Hot, callers: 32 },
];

/// For sequor and the fastest of the others only.
const CROWD: Load = Load { work: Work::Deposit, callers: 256 };

/// What a measurement takes beside itself: a copy of the database, connections and the warm-up.
const AROUND: Duration = Duration::from_millis(500);

/// What a filled database takes.
const FILLING: Duration = Duration::from_secs(2);

/// How much longer than planned a measurement may take before it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

const READING: &str = "Written by `cargo xtask bench --peers --write`. The same work by each \
library as its documents show it, in one run on one machine. On PostgreSQL: one server with fsync \
on, 8 connections that are not tested before use, and a proxy in between where a round trip takes \
longer. On SQLite: the same version for all, WAL and synchronous=FULL, files on the disk of the \
server's; there is no network in it, hence no proxy.

*Create* opens a new account; *deposit* pays into one of 1,000 accounts, in no order, that have 10 \
events each; *cold* is the same where nobody remembers accounts from one command to the next \
(else sequor and evento do, the others load them each time); *one hot account* is the same account \
for all. Each figure is the median of three rounds, in which the systems take turns; each \
measurement has a fresh copy of the same filled database and a warm-up: each account is paid into \
once before deposits, else the same work for a quarter of the time. A conflict is followed by \
another try at once, and the caller's time goes on.

For each command sequor writes a command row with what a replay answers, an idempotency key, the \
event with its position in the log, the version of the account, and on PostgreSQL a row in the \
outbox. The others write the event, and es-entity a row for each new account.

Client and server share two cores, with others as well, so commands a second do not compare with \
those of another machine or hour, and their ratios suffer while the cores are busy: whoever has more \
sessions gets more of them. *CPU µs* is the processor time of client and server for each command \
(the network's included, where there is one), which hardly depends on that.";

/// Where something is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// On a server.
    Postgres(Disk, Network),
    /// On a file.
    Sqlite,
}

impl Ground {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Postgres(Disk::Own, Network::Direct) => "PostgreSQL, this machine's disk",
            Self::Postgres(Disk::Own, Network::Slow) => {
                "PostgreSQL, this machine's disk, 1 ms a round trip"
            }
            Self::Postgres(Disk::Slow, Network::Direct) => "PostgreSQL, 1 ms more a flush",
            Self::Postgres(Disk::Slow, Network::Slow) => {
                "PostgreSQL, 1 ms more a flush, 1 ms a round trip"
            }
            Self::Sqlite => "SQLite, this machine's disk",
        }
    }
}

/// Measures what was asked for, and prints and writes the tables.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let bench = Bench::new(arguments)?;
    let mut report = Report::default();
    report.say("## Beside its peers");
    report.say(READING);
    report.say(&about("PostgreSQL", &bench.postgres));
    report.say(&about("SQLite", &bench.sqlite));
    println!("\n{}", bench.plan());
    let runtime = tokio::runtime::Runtime::new()?;
    let mut rows = Vec::new();
    for disk in [Disk::Own, Disk::Slow] {
        rows.extend(runtime.block_on(bench.on_postgres(disk, &mut report))?);
    }
    rows.extend(runtime.block_on(bench.on_sqlite(&mut report))?);
    bench.bar.finish_and_clear();
    aims::tell(&mut report, &rows);
    if arguments.write {
        report.write()?;
    }
    Ok(())
}

fn about(store: &str, systems: &[&'static dyn System]) -> String {
    let lines = systems.iter().map(|one| format!("* {}: {}.", one.name(), one.about()));
    format!("On {store}:\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

struct Bench {
    /// sequor comes first.
    postgres: Vec<&'static dyn System>,
    /// sequor comes first.
    sqlite: Vec<&'static dyn System>,
    rounds: usize,
    duration: Duration,
    bar: ProgressBar,
}

impl Bench {
    fn new(arguments: &Arguments) -> Result<Self> {
        let only = &arguments.only;
        let all = || peers::POSTGRES.iter().chain(peers::SQLITE);
        let is_known = |wanted: &str| all().any(|one| one.name() == wanted);
        let unknown: Vec<_> = only.iter().filter(|name| !is_known(name)).collect();
        ensure!(unknown.is_empty(), "nobody is called {unknown:?}");
        let wanted = |ours, others: &[&'static dyn System]| -> Vec<_> {
            let is_wanted = |one: &&&dyn System| {
                only.is_empty() || only.iter().any(|wanted| wanted == one.name())
            };
            [ours].into_iter().chain(others.iter().filter(is_wanted).copied()).collect()
        };
        let outbox = if arguments.without_outbox { Outbox::Left } else { Outbox::Written };
        let (rounds, seconds) = if arguments.quick { (1, 0.1) } else { (3, arguments.seconds) };
        let style = "  {spinner} {elapsed} of about {duration} {wide_bar} {msg}";
        let bar = ProgressBar::no_length().with_style(ProgressStyle::with_template(style)?);
        bar.enable_steady_tick(Duration::from_millis(500));
        let bench = Self {
            postgres: wanted(peers::ours_on_postgres(outbox), peers::POSTGRES),
            sqlite: wanted(peers::OURS_ON_SQLITE, peers::SQLITE),
            rounds,
            duration: Duration::from_secs_f64(seconds),
            bar,
        };
        bench.bar.set_length(u64::try_from(bench.measurements())?);
        Ok(bench)
    }

    /// On four kinds of servers, and on files.
    fn measurements(&self) -> usize {
        let on = |systems: &[_]| LOADS.len() * systems.len() + systems.len().min(2);
        self.rounds * (4 * on(&self.postgres) + on(&self.sqlite))
    }

    /// What is ahead, and how long it takes.
    fn plan(&self) -> String {
        let count = self.measurements();
        let fills = 2 * self.postgres.len() + self.sqlite.len();
        let all = (self.duration + AROUND).as_secs_f64()
            * u32::try_from(count).map_or(0.0, f64::from)
            + FILLING.as_secs_f64() * u32::try_from(fills).map_or(0.0, f64::from);
        format!(
            "{count} measurements of {} s each: about {:.0} minutes.",
            self.duration.as_secs_f64(),
            (all / 60.0).ceil()
        )
    }

    /// Everything on PostgreSQL with one kind of disk.
    async fn on_postgres(&self, disk: Disk, report: &mut Report) -> Result<Vec<Row>> {
        let stage = PostgresStage::start(disk)?;
        let systems = self.filled(&stage, &self.postgres).await?;
        let mut all = Vec::new();
        for network in [Network::Direct, Network::Slow] {
            let ground = Ground::Postgres(disk, network);
            let rows = self.rows(&stage, ground, &systems).await?;
            self.bar.suspend(|| report.add(ground.title(), &rows));
            if network == Network::Direct {
                self.bar.set_message("pgbench");
                let limits = limit::measure(&stage, self.postgres.first(), self.duration).await;
                self.bar.suspend(|| match limits {
                    Ok(limits) => limit::tell(report, &limits, &rows),
                    Err(error) => eprintln!("no limit: {error:#}"),
                });
            }
            all.extend(rows);
        }
        Ok(all)
    }

    /// Everything on SQLite.
    async fn on_sqlite(&self, report: &mut Report) -> Result<Vec<Row>> {
        let stage = SqliteStage::start()?;
        let systems = self.filled(&stage, &self.sqlite).await?;
        let rows = self.rows(&stage, Ground::Sqlite, &systems).await?;
        self.bar.suspend(|| report.add(Ground::Sqlite.title(), &rows));
        Ok(rows)
    }

    /// The systems that have their accounts now: without them a peer is left out.
    async fn filled(
        &self,
        stage: &dyn Stage,
        systems: &[&'static dyn System],
    ) -> Result<Vec<&'static dyn System>> {
        let mut filled = Vec::new();
        for system in systems {
            self.bar.set_message(format!("filling {}", system.name()));
            match tokio::time::timeout(PATIENCE, stage.fill(*system)).await {
                Ok(Ok(())) => filled.push(*system),
                Ok(Err(error)) => {
                    self.complain(&format!("{} is left out: {error:#}", system.name()))
                }
                Err(_) => self.complain(&format!("{} is left out: too slow", system.name())),
            }
        }
        ensure!(
            filled.first().map(|system| system.name()) == systems.first().map(|one| one.name()),
            "sequor has no accounts"
        );
        Ok(filled)
    }

    /// Every load, and the crowd on the fastest two.
    async fn rows(
        &self,
        stage: &dyn Stage,
        ground: Ground,
        systems: &[&'static dyn System],
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for load in LOADS {
            rows.push(self.row(stage, ground, (load, systems)).await);
        }
        let crowd = fastest_two(&rows, systems);
        rows.push(self.row(stage, ground, (CROWD, &crowd)).await);
        Ok(rows)
    }

    /// One load on each system, who take turns.
    async fn row(
        &self,
        stage: &dyn Stage,
        ground: Ground,
        (load, systems): (Load, &[&'static dyn System]),
    ) -> Row {
        let mut seen: Vec<Vec<Figure>> = vec![Vec::new(); systems.len()];
        for _ in 0..self.rounds {
            for (seen, system) in seen.iter_mut().zip(systems) {
                let what = crate::report::load(load);
                self.bar.set_message(format!("{}: {what}: {}", ground.title(), system.name()));
                let figure = self.figure(stage, ground, (load, *system));
                let figure = tokio::time::timeout(self.duration + PATIENCE, figure).await;
                seen.push(figure.unwrap_or_else(|_| bail!("too slow")).unwrap_or_else(|error| {
                    self.complain(&format!("{}, {what}: {error:#}", system.name()));
                    Figure::failed()
                }));
                self.bar.inc(1);
            }
        }
        let names = systems.iter().map(|system| system.name());
        Row { ground, load, figures: names.zip(seen.into_iter().map(median)).collect() }
    }

    /// One load on one system, on a new copy of its database.
    async fn figure(
        &self,
        stage: &dyn Stage,
        ground: Ground,
        (load, system): (Load, &'static dyn System),
    ) -> Result<Figure> {
        let network = match ground {
            Ground::Postgres(_, network) => network,
            Ground::Sqlite => Network::Direct,
        };
        let server = stage.server()?;
        let place = stage.copy(system, network).await?;
        let as_wanted = if load.work == Work::Cold { system.cold() } else { None };
        let accounts = as_wanted.unwrap_or(system).open(&place).await?;
        if load.work == Work::Deposit {
            meet_accounts(&accounts).await?;
        } else {
            load.drive(&accounts, server, self.duration / 4).await?;
        }
        let figure = load.drive(&accounts, server, self.duration).await;
        accounts.close().await;
        figure
    }

    /// What a system cannot do is told, and nobody stops for it.
    fn complain(&self, what: &str) {
        self.bar.suspend(|| eprintln!("  {what}"));
    }
}

/// The first system, and the one that did most deposits for the most callers beside it.
fn fastest_two(rows: &[Row], systems: &[&'static dyn System]) -> Vec<&'static dyn System> {
    let deposits = rows.iter().rev().find(|row| row.load.work == Work::Deposit);
    let best = deposits.and_then(Row::best).map(|(name, _)| name);
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
