//! Runs the program and masks what differs from run to run.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A folder with, perhaps, a database in it.
pub(crate) struct Folder(tempfile::TempDir);

/// What a run said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), content).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self.start(arguments);
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| mask(&String::from_utf8(bytes).unwrap());
        let (out, error) = (text(output.stdout), text(output.stderr));
        Ran { code: output.status.code(), out, error }
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_billing"))
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Masks ids and times.
fn mask(text: &str) -> String {
    text.split_inclusive(char::is_whitespace).map(mask_word).collect()
}

fn mask_word(word: &str) -> String {
    let bare = word.trim_end();
    let space = word.strip_prefix(bare).unwrap_or_default();
    let is_time = bare.len() == 27 && bare.starts_with("20") && bare.ends_with('Z');
    let is_id = bare.len() == 36 && bare.matches('-').count() == 4 && !bare.starts_with("018f2f6e");
    match bare {
        _ if is_time => format!("<time>{space}"),
        _ if is_id => format!("<command id>{space}"),
        _ if bare.starts_with('…') && bare.len() > '…'.len_utf8() => format!("…<id>{space}"),
        _ => word.to_owned(),
    }
}

/// Masks what differs from store to store, too: what it is called, and positions, which may have
/// gaps.
pub(crate) fn without_places(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(": ") {
        Some((_, told)) if told.contains("on this ") => told.replace("database", "file"),
        _ => without_position(line).replace("in the database.", "in the file."),
    });
    lines.map(|line| line + "\n").collect()
}

fn without_position(line: &str) -> String {
    let Some((before, after)) = line.split_once("position  ").or(line.split_once("position "))
    else {
        return line.to_owned();
    };
    format!("{before}position <n>{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}
