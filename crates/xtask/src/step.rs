//! One spawned command: shown before it runs, timed after.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read, Write, stdout};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

/// A cargo command line with the environment it needs.
#[derive(Debug)]
pub(crate) struct Step {
    arguments: Vec<String>,
    environment: Vec<(&'static str, &'static str)>,
    /// Not shown: it means nothing once this run is over.
    passing: Vec<(&'static str, String)>,
}

impl Step {
    /// A step which runs `cargo` with these arguments.
    pub(crate) fn cargo<I>(arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { arguments, environment: Vec::new(), passing: Vec::new() }
    }

    /// The same step with one more environment variable.
    pub(crate) fn with_env(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// The same step with one more environment variable, whose value ends with this run: the line
    /// for the shell leaves it out.
    pub(crate) fn with_passing_env(mut self, name: &'static str, value: &str) -> Self {
        self.passing.push((name, value.to_owned()));
        self
    }

    /// Runs the step in `root` and leaves its output to the terminal.
    pub(crate) fn run(&self, root: &Path) -> Result<()> {
        self.timed(|| Ok(self.spawn(root, Stdio::inherit())?.wait()?))
    }

    /// Runs the step in `root`, passes its stdout on, and shows each line to `watch` as well.
    pub(crate) fn run_watched(&self, root: &Path, mut watch: impl FnMut(&str)) -> Result<()> {
        self.timed(|| {
            let mut child = self.spawn(root, Stdio::piped())?;
            if let Some(output) = child.stdout.take() {
                forward(output, stdout(), &mut watch)?;
            }
            Ok(child.wait()?)
        })
    }

    fn timed(&self, run: impl FnOnce() -> Result<ExitStatus>) -> Result<()> {
        println!("$ {self}");
        let start = Instant::now();
        let status = run()?;
        println!("  took {:.1} s", start.elapsed().as_secs_f64());
        if !status.success() {
            bail!("`{self}` failed with {status} (see what it printed above)");
        }
        Ok(())
    }

    fn spawn(&self, root: &Path, stdout: Stdio) -> Result<Child> {
        Command::new("cargo")
            .args(&self.arguments)
            .envs(self.environment.iter().copied())
            .envs(self.passing.iter().map(|(name, value)| (*name, value)))
            .current_dir(root)
            .stdout(stdout)
            .spawn()
            .context("cannot start cargo (is it in the PATH? https://rustup.rs installs it)")
    }
}

/// The line a reader can paste into a shell to run the step alone.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str("cargo")?;
        for argument in &self.arguments {
            write!(f, " {}", quoted(argument))?;
        }
        Ok(())
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Copies line by line, so that the reader sees each one as soon as it is there.
fn forward(from: impl Read, mut to: impl Write, watch: &mut impl FnMut(&str)) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        watch(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Step;

    #[test]
    fn a_step_reads_as_a_line_for_the_shell() {
        let step =
            Step::cargo(["doc", "--no-deps", "it's"]).with_env("RUSTDOCFLAGS", "-D warnings");
        insta::assert_snapshot!(step, @r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s'");
    }

    #[test]
    fn what_ends_with_the_run_is_not_in_the_line() {
        let step = Step::cargo(["test"]).with_passing_env("DATABASE_URL", "postgres://gone");
        insta::assert_snapshot!(step, @"cargo test");
    }

    #[test]
    fn every_line_is_shown_to_the_watcher() {
        let (mut copy, mut lines) = (Vec::new(), Vec::new());
        super::forward(&b"one\ntwo"[..], &mut copy, &mut |line: &str| {
            lines.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(copy, b"one\ntwo");
        assert_eq!(lines, ["one\n", "two"]);
    }
}
