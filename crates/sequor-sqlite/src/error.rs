//! The door where SQLite's result codes become the words of sequor. No code is named elsewhere.

use std::fmt;
use std::path::PathBuf;

use sequor_core::{ProjectionError, StoreError};
use sqlx::migrate::MigrateError;

use crate::settings::SettingsError;

/// Why a store could not be opened.
// No derived Debug: `main` and `unwrap` show what Debug says, and what to do is in the sentence.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting is wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Another bus has the file.
    #[error(
        "{} is in use by another bus (its lock is {}); stop that process, or close its store, first",
        path.display(),
        lock.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The file that the lock is on. It may stay when nobody holds it: the lock counts, not
        /// the file.
        lock: PathBuf,
    },
    /// The file, its folder or its lock cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    Unusable {
        /// The file that lies there, or should.
        path: PathBuf,
        /// What the operating system said.
        reason: std::io::Error,
    },
    /// The tables could not be brought up to date, or were written by a newer release.
    #[error("the tables of {} cannot be brought up to date: {reason}", path.display())]
    Migrate {
        /// The file.
        path: PathBuf,
        /// What the migration said.
        reason: MigrateError,
    },
    /// The file cannot be opened or read.
    #[error("{}: {reason}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: Box<StoreError>,
    },
    /// The program was built with an SQLite that lacks what sequor's statements use.
    #[error(
        "this program was built with SQLite {found}, sequor needs {needed} or newer; something pins an \
         old `libsqlite3-sys`: `cargo update libsqlite3-sys`, or see `cargo tree -i libsqlite3-sys`"
    )]
    LibraryTooOld {
        /// What it was built with.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
    /// What is there is something else; it was not touched.
    #[error("{} is no SQLite database; name another file, or move this one away", path.display())]
    NoDatabase {
        /// What is there.
        path: PathBuf,
    },
}

impl OpenError {
    /// What the variant is called.
    fn name(&self) -> &'static str {
        match self {
            Self::Settings(_) => "Settings",
            Self::InUse { .. } => "InUse",
            Self::Unusable { .. } => "Unusable",
            Self::Migrate { .. } => "Migrate",
            Self::Store { .. } => "Store",
            Self::LibraryTooOld { .. } => "LibraryTooOld",
            Self::NoDatabase { .. } => "NoDatabase",
        }
    }
}

/// The name, and the sentence that says what to do.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.name())
    }
}

/// What a failed statement means for the caller. Nothing was written.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    let Some(code) = result_code(&error) else {
        return other_error(error);
    };
    match code & 0xff {
        // BUSY, LOCKED: somebody else held a lock for the whole bounded wait.
        5 | 6 => StoreError::Busy,
        // CONSTRAINT. SQLite's message names tables and columns, never values.
        19 => corrupt(format!("a constraint refused what was written: {error}")),
        // CORRUPT, NOTADB.
        11 | 26 => corrupt(format!("the file is damaged: {error}")),
        // READONLY, IOERR, FULL, CANTOPEN, NOMEM, PERM, AUTH, INTERRUPT, PROTOCOL, NOLFS.
        8 | 10 | 13 | 14 | 7 | 3 | 23 | 9 | 15 | 22 => StoreError::unavailable(error),
        // Everything else is a fault of ours or of somebody who changed the tables.
        _ => corrupt(format!("a statement failed: {error}")),
    }
}

/// What a failed COMMIT means for the caller. When the flush itself failed, the rows may turn out
/// to be there after a crash.
pub(crate) fn commit_error(error: sqlx::Error) -> StoreError {
    let lost = match result_code(&error) {
        Some(code) => code & 0xff == 10,
        None => is_lost(&error),
    };
    if lost {
        tracing::error!(%error, "a commit has an unknown outcome");
        return StoreError::Unknown;
    }
    store_error(error)
}

/// What a projection's error means.
pub(crate) fn projection_error(name: &str, error: ProjectionError) -> StoreError {
    user_error(&format!("projection `{name}` failed"), error)
}

/// What an error of user code means. The database's own troubles keep their meaning.
pub(crate) fn user_error(whose: &str, error: ProjectionError) -> StoreError {
    let error = match error.downcast::<sqlx::Error>() {
        Ok(error) => store_error(*error),
        Err(error) => corrupt(error.to_string()),
    };
    let StoreError::Corrupt { what } = error else {
        return error;
    };
    corrupt(format!("{whose}: {what}"))
}

/// Whether a constraint refused a row: what was known before the write no longer held.
pub(crate) fn is_constraint(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| code & 0xff == 19)
}

/// SQLite's extended result code, if the error is SQLite's.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

fn is_lost(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) | sqlx::Error::PoolClosed)
}

fn other_error(error: sqlx::Error) -> StoreError {
    if is_lost(&error) || matches!(error, sqlx::Error::BeginFailed) {
        return StoreError::unavailable(error);
    }
    corrupt(format!("the driver failed: {error}"))
}

pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    /// An error of SQLite with any code, as the driver would give it.
    #[derive(Debug)]
    struct Coded(i32);

    impl fmt::Display for Coded {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "code {}", self.0)
        }
    }

    impl std::error::Error for Coded {}

    impl sqlx::error::DatabaseError for Coded {
        fn message(&self) -> &str {
            "message"
        }
        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.to_string().into())
        }
        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }
        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }
        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }
        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }
    }

    fn coded(code: i32) -> sqlx::Error {
        sqlx::Error::Database(Box::new(Coded(code)))
    }

    #[test]
    fn debug_says_what_to_do_too() {
        let error = OpenError::NoDatabase { path: "notes.txt".into() };
        assert_eq!(format!("{error:?}"), format!("NoDatabase: {error}"));
        assert!(error.to_string().contains("name another file"), "{error}");
    }

    #[test]
    fn a_code_says_what_the_caller_does_next() {
        for code in [5, 6, 261, 262, 517] {
            assert!(matches!(store_error(coded(code)), StoreError::Busy), "{code}");
        }
        for code in [3, 7, 8, 264, 520, 776, 1032, 9, 10, 266, 522, 778, 1034, 13, 14, 15, 22, 23] {
            assert!(matches!(store_error(coded(code)), StoreError::Unavailable(_)), "{code}");
        }
        for code in [1, 11, 267, 26, 1299, 1555, 2067, 787, 531] {
            assert!(matches!(store_error(coded(code)), StoreError::Corrupt { .. }), "{code}");
        }
    }

    #[test]
    fn a_failed_flush_at_commit_is_unknown_and_a_full_disk_is_not() {
        assert!(matches!(commit_error(coded(1034)), StoreError::Unknown));
        assert!(matches!(commit_error(sqlx::Error::WorkerCrashed), StoreError::Unknown));
        assert!(matches!(commit_error(coded(13)), StoreError::Unavailable(_)));
    }

    #[test]
    fn a_projection_keeps_the_meaning_of_the_databases_troubles() {
        let full = projection_error("balances", Box::new(coded(13)));
        assert!(matches!(full, StoreError::Unavailable(_)));
        let refused = projection_error("balances", Box::new(coded(1555)));
        assert!(matches!(refused, StoreError::Corrupt { what } if what.contains("`balances`")));
        let other = projection_error("balances", "no such account".into());
        assert!(matches!(other, StoreError::Corrupt { what } if what.contains("no such account")));
    }
}
