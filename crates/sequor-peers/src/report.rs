//! Tables: on the terminal, and in their section of docs/BENCHMARKS.md.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use crate::load::{Figure, Load, Work};
use crate::matrix::Ground;

/// From here to its end the page is ours; `cargo xtask bench --write` keeps it.
const MARK: &str = "<!-- peers -->";

/// What was measured under one load: the median of each system, in the order of the systems.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) ground: Ground,
    pub(crate) load: Load,
    /// sequor comes first.
    pub(crate) figures: Vec<(&'static str, Figure)>,
}

impl Row {
    /// Those whom sequor is compared with.
    pub(crate) fn others(&self) -> impl Iterator<Item = &(&'static str, Figure)> {
        self.figures.iter().skip(1)
    }

    /// The one of them that did most.
    pub(crate) fn best(&self) -> Option<(&'static str, Figure)> {
        let best =
            self.others().max_by(|one, other| one.1.per_second.total_cmp(&other.1.per_second));
        best.copied()
    }
}

/// All that is told of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    text: String,
}

impl Report {
    /// Adds a paragraph, and prints it.
    pub(crate) fn say(&mut self, text: &str) {
        println!("\n{text}");
        let _ = write!(self.text, "\n{text}\n");
    }

    /// Adds the ratios of one condition and then all that was seen, and prints them.
    pub(crate) fn add(&mut self, title: &str, rows: &[Row]) {
        self.say(&format!("### {title}"));
        self.say(&ratios("commands a second, sequor to", rows, rates).to_string());
        self.say(&ratios("processor time a command, to sequor's", rows, costs).to_string());
        self.say(&figures(rows).to_string());
    }

    /// Puts everything into the page, in place of what was there the last time.
    pub(crate) fn write(&self) -> Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/BENCHMARKS.md");
        let page = std::fs::read_to_string(&path).context("cannot read docs/BENCHMARKS.md")?;
        let before = page.split(MARK).next().unwrap_or_default().trim_end();
        let page = format!("{before}\n\n{MARK}\n{}", self.text);
        std::fs::write(&path, page).context("cannot write docs/BENCHMARKS.md")
    }
}

/// How many times as many commands a second sequor has done as each of the others.
fn rates(figure: &Figure) -> f64 {
    figure.per_second
}

/// How many times as much processor time each of the others has used for a command.
fn costs(figure: &Figure) -> f64 {
    if figure.cpu.is_zero() { 0.0 } else { 1.0 / figure.cpu.as_secs_f64() }
}

/// sequor's merit in terms of each of the others'.
fn ratios(corner: &str, rows: &[Row], merit: fn(&Figure) -> f64) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(Row::others) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let head = [corner, "the best"].into_iter().chain(names.iter().copied());
    let body = rows.iter().map(|row| {
        let ours = row.figures.first().map_or(f64::NAN, |(_, figure)| merit(figure));
        let best = row.others().map(|(_, theirs)| merit(theirs)).fold(f64::NAN, f64::max);
        let cells = names.iter().map(|wanted| {
            let theirs = row.figures.iter().find(|(name, _)| name == wanted);
            theirs.map_or_else(String::new, |(_, theirs)| times(ours / merit(theirs)))
        });
        [load(row.load), times(ours / best)].into_iter().chain(cells).collect()
    });
    table(head.collect(), body.collect())
}

/// A ratio; nothing beside who has done nothing.
fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2} ×") } else { "—".to_owned() }
}

fn figures(rows: &[Row]) -> Table {
    let head =
        vec!["what", "system", "commands /s", "CPU µs", "p50 ms", "p99 ms", "conflicts", "errors"];
    let body = rows.iter().flat_map(|row| {
        row.figures.iter().map(|(name, figure)| {
            vec![
                load(row.load),
                (*name).to_owned(),
                rate(figure.per_second),
                format!("{:.0}", figure.cpu.as_secs_f64() * 1e6),
                millis(figure.p50),
                millis(figure.p99),
                figure.conflicts.to_string(),
                figure.errors.to_string(),
            ]
        })
    });
    table(head, body.collect())
}

pub(crate) fn load(load: Load) -> String {
    let work = match load.work {
        Work::Create => "create",
        Work::Deposit => "deposit",
        Work::Cold => "cold deposit",
        Work::Hot => "one hot account",
    };
    match load.callers {
        1 => format!("{work}, 1 caller"),
        callers => format!("{work}, {callers} callers"),
    }
}

/// A table: words to the left, figures to the right.
pub(crate) fn table(head: Vec<&str>, rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(head).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A rate, with thousands apart.
pub(crate) fn rate(per_second: f64) -> String {
    let digits = format!("{per_second:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn millis(latency: Duration) -> String {
    format!("{:.2}", latency.as_secs_f64() * 1e3)
}
