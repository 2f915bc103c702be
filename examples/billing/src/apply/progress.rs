//! What a person sees while lines are applied: a bar on a terminal, and what is wrong with a line.

use std::io::Write as _;

use indicatif::{ProgressBar, ProgressStyle};

/// A message of ours stays readable, whatever text of the line it quotes.
const MESSAGE_CHARS_MAX: usize = 400;

/// A bar on stderr, if that is a terminal; in a pipe nothing is drawn.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar that fills up, or one that only counts where the end is not known.
    pub(super) fn new(bytes: Option<u64>) -> anyhow::Result<Self> {
        let bar = bytes.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let template = match bytes {
            Some(_) => "{wide_bar} {bytes} of {total_bytes}, {eta} left",
            None => "{spinner} {bytes} read",
        };
        bar.set_style(ProgressStyle::with_template(template)?);
        Ok(Self(bar))
    }

    /// Everything up to here is done.
    pub(super) fn advance(&self, bytes_read: u64) {
        self.0.set_position(bytes_read);
    }

    /// Says what is wrong with a line, above the bar.
    pub(super) fn say(&self, number: u64, what: &str) {
        let what = plain(what);
        // Whoever does not listen any more does not stop the good lines.
        self.0.suspend(|| writeln!(std::io::stderr(), "line {number}: {what}").ok());
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A message without control characters: what it quotes from a line must not steer the terminal.
fn plain(message: &str) -> String {
    let control = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
    let mut chars = message.chars().map(control);
    let mut plain: String = chars.by_ref().take(MESSAGE_CHARS_MAX).collect();
    if chars.next().is_some() {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_neither_steers_the_terminal_nor_fills_it() {
        assert_eq!(plain("unknown field `\u{1b}[2J`"), "unknown field `\u{fffd}[2J`");
        assert_eq!(plain(&"x".repeat(500)).chars().count(), MESSAGE_CHARS_MAX + 1);
    }
}
