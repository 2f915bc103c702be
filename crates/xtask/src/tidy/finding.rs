//! What a rule has to say, and where.

use std::fmt;

/// One breach of a rule. Sorts by place, so that a run reads file by file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    message: String,
    advice: String,
}

impl Finding {
    /// A finding at a line (the first is 1) with what is wrong and what to do about it.
    pub(crate) fn new(
        path: impl Into<String>,
        line: usize,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, message: message.into(), advice: advice.into() }
    }

    /// A finding about a file as a whole.
    pub(crate) fn of_file(
        path: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(path, 1, message, advice)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, message, advice } = self;
        write!(f, "{path}:{line}: {message} ({advice})")
    }
}

/// The findings, one a line.
pub(crate) fn listing(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    lines.join("\n")
}
