//! Why there is no server, and what to do about it.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::find::{Binaries, MAJOR_MIN};

/// How many of a log's last lines an error shows.
const LOG_LINES_MAX: usize = 20;

/// Why a server could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A program is missing. Install it, or name a server in `DATABASE_URL`.
    #[error(
        "{program} was not found{}; {}", too_old(.older), advice(program)
    )]
    NotInstalled {
        /// The program: `postgres` or `pgbouncer`.
        program: &'static str,
        /// What was found, but is too old.
        older: Vec<Binaries>,
    },
    /// The program could not be installed. Do it by hand, or name a server in `DATABASE_URL`.
    #[error("{program} could not be installed; {}\n{said}", advice(program))]
    NotInstallable {
        /// The program: `postgres` or `pgbouncer`.
        program: &'static str,
        /// The last lines of what the package manager said.
        said: String,
    },
    /// A file, a folder, a process or a socket cannot be used.
    #[error("cannot {what}: {reason}")]
    Unusable {
        /// What was tried.
        what: String,
        /// What the operating system said.
        reason: std::io::Error,
    },
    /// A program ended, and should not have. What it said tells why.
    #[error(
        "{program} ended before it was asked to; the last it said was:\n{said}\n\
         (does it say that a folder cannot be entered? set TMPDIR to one that every user can enter)"
    )]
    Ended {
        /// The program.
        program: String,
        /// The last lines of its log.
        said: String,
    },
    /// A program did not do in time what it should. The machine is overloaded, or its log tells why.
    #[error("{program} did not {what} within {} s; the last it said was:\n{said}", limit.as_secs())]
    TooSlow {
        /// The program.
        program: String,
        /// What it did not do.
        what: &'static str,
        /// How long it had.
        limit: Duration,
        /// The last lines of its log.
        said: String,
    },
}

impl ServerError {
    /// Says what was tried when the operating system refused.
    pub(crate) fn unusable(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        |reason| Self::Unusable { what, reason }
    }
}

/// The last lines of a log; they are all that an error shows of it.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(LOG_LINES_MAX);
    lines.get(start..).unwrap_or_default().join("\n")
}

/// The last lines of a log file, or why they cannot be shown.
pub(crate) fn last_lines_of(log: &Path) -> String {
    match std::fs::read(log) {
        Ok(bytes) => last_lines(&String::from_utf8_lossy(&bytes)),
        Err(reason) => format!("({} cannot be read: {reason})", log.display()),
    }
}

fn too_old(older: &[Binaries]) -> String {
    let mut text = String::new();
    for binaries in older {
        let (folder, major) = (binaries.folder().display(), binaries.major());
        // Writing into a string does not fail.
        let _ = write!(
            text,
            " (there is {major} in {folder}, but {MAJOR_MIN} is the oldest that will do)"
        );
    }
    text
}

fn advice(program: &str) -> String {
    match program {
        "pgbouncer" => {
            "install pgbouncer (Debian: apt-get install pgbouncer; macOS: brew install pgbouncer)"
                .to_owned()
        }
        _ => format!(
            "install PostgreSQL {MAJOR_MIN} or newer (Debian: apt-get install postgresql; macOS: brew install postgresql), \
             name its bin folder in PG_BIN, or set DATABASE_URL to a server where this user may create databases and roles"
        ),
    }
}
