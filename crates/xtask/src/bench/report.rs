//! Tables: on the terminal while they grow, and in docs/BENCHMARKS.md.

use std::fmt::Write as _;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

/// All tables of a run, in order.
#[derive(Debug, Default)]
pub(super) struct Report {
    sections: Vec<(String, String, Table)>,
}

impl Report {
    /// Adds a table with a sentence that says how to read it, and prints it.
    pub(super) fn add(&mut self, title: &str, reading: &str, table: Table) {
        println!("\n{title}\n{reading}\n{table}");
        self.sections.push((title.to_owned(), reading.to_owned(), table));
    }

    /// The page for the docs.
    pub(super) fn page(&self, command: &str) -> String {
        let mut page = format!(
            "# Benchmarks\n\nWritten by `{command}` on a shared virtual machine with two cores, client \
             and database on both. Ratios are of one run and come first; absolute figures are \
             what that machine gave that minute, and do not compare with others'.\n"
        );
        for (title, reading, table) in &self.sections {
            let _ = write!(page, "\n## {title}\n\n{reading}\n\n{table}\n");
        }
        page
    }
}

/// A table: words to the left, figures to the right.
pub(super) fn table(head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(head).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A ratio, as people read it.
pub(super) fn ratio(of: f64, to: f64) -> String {
    format!("{:.2} ×", of / to)
}

/// A rate, with thousands apart.
pub(super) fn rate(per_second: f64) -> String {
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

/// A number of callers, in words.
pub(super) fn callers(count: usize) -> String {
    if count == 1 { "1 caller".to_owned() } else { format!("{count} callers") }
}

/// A latency, in microseconds.
pub(super) fn micros(latency: std::time::Duration) -> String {
    format!("{:.0}", latency.as_secs_f64() * 1e6)
}

/// The middle one of an odd number of values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
