//! The door where PostgreSQL's states become the words of sequor. No state is named elsewhere.

use std::fmt;
use std::io::ErrorKind;

use sequor_core::{Invalid, ProjectionError, StoreError};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgConnectOptions;

use crate::retention::MonthDrop;
use crate::settings::SettingsError;

/// Why a store could not be installed or opened.
// No derived Debug: `main` and `unwrap` show what Debug says, and what to do is in the sentence.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting is wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The server is older than sequor works with.
    #[error("the server is PostgreSQL {found}; sequor needs 15 or newer")]
    ServerTooOld {
        /// Its major version.
        found: u32,
    },
    /// The database keeps its text in another encoding.
    #[error("the database keeps text as {found}; create one with ENCODING 'UTF8'")]
    Encoding {
        /// Which.
        found: String,
    },
    /// The tables could not be brought up to date, or were written by a newer release.
    #[error("sequor's tables cannot be brought up to date: {}", migrate_brief(.0))]
    Migrate(MigrateError),
    /// The tables are not there, or are older than this release.
    #[error(
        "the database has sequor's tables up to number {found}, this release needs {needed}; run \
         `sequor::postgres::install` with the role that owns them"
    )]
    NotInstalled {
        /// The last migration that was run; 0 for none.
        found: i64,
        /// The last one of this release.
        needed: i64,
    },
    /// Sequor's roles are not on the server yet, and the owner may not make them.
    #[error(
        "the roles sequor_app and sequor_system are missing, and role `{role}` may not create roles; \
         run, as a superuser: CREATE ROLE sequor_app NOLOGIN; CREATE ROLE sequor_system NOLOGIN; \
         GRANT sequor_app, sequor_system TO \"{role}\" WITH ADMIN OPTION"
    )]
    RolesMissing {
        /// The owner.
        role: String,
    },
    /// The role may not do what a store does.
    #[error(
        "role `{role}` may not use sequor's functions; run, as the owner who installed them first on \
         this server or as a superuser: GRANT sequor_app, sequor_system TO \"{role}\""
    )]
    NotGranted {
        /// Which role.
        role: String,
    },
    /// The database was restored on a server where sequor's roles were not there yet: roles belong to
    /// a server, and what a dump says of them was lost.
    #[error(
        "the database was restored before the roles sequor_app and sequor_system were there, and has \
         lost its walls and rights; see that both are there (CREATE ROLE sequor_app; CREATE ROLE \
         sequor_system), and restore it anew"
    )]
    RestoredWithoutRoles,
    /// Behind a pooler, the role's transactions run at another level than sequor works at.
    #[error(
        "role `{role}` works at {found}; run: ALTER ROLE \"{role}\" SET \
         default_transaction_isolation = 'read committed', and have the pooler reconnect"
    )]
    Isolation {
        /// Which role.
        role: String,
        /// At which level.
        found: String,
    },
    /// The sequence of positions is not there, as after a restore of tables alone.
    #[error(
        "the sequence sequor.positions is missing; run `sequor::postgres::install` with the role that \
         owns the tables, then open again"
    )]
    PositionsMissing,
    /// The sequence of positions is behind what is stored, as after a restore of tables alone.
    #[error(
        "the next position would be {next}, but {highest} is stored; run, as the owner: SELECT \
         setval('sequor.positions', {highest})"
    )]
    PositionsBehind {
        /// What would be drawn.
        next: i64,
        /// What is there.
        highest: i64,
    },
    /// The sequence of positions hands out numbers in blocks or goes round, so that readers would
    /// skip events.
    #[error(
        "positions are not drawn in order; run, as the owner: ALTER SEQUENCE sequor.positions \
         INCREMENT 1 CACHE 1 NO CYCLE"
    )]
    PositionsUnordered,
    /// The server is a standby: it takes no writes, and nobody sees there who writes.
    #[error("the server is a standby; open the store on the primary")]
    Standby,
    /// The server cannot be reached or used.
    #[error("the database cannot be used: {0}")]
    Store(Box<StoreError>),
}

impl OpenError {
    /// What the variant is called.
    fn name(&self) -> &'static str {
        match self {
            Self::Settings(_) => "Settings",
            Self::ServerTooOld { .. } => "ServerTooOld",
            Self::Encoding { .. } => "Encoding",
            Self::Migrate(_) => "Migrate",
            Self::NotInstalled { .. } => "NotInstalled",
            Self::RolesMissing { .. } => "RolesMissing",
            Self::NotGranted { .. } => "NotGranted",
            Self::RestoredWithoutRoles => "RestoredWithoutRoles",
            Self::Isolation { .. } => "Isolation",
            Self::PositionsMissing => "PositionsMissing",
            Self::PositionsBehind { .. } => "PositionsBehind",
            Self::PositionsUnordered => "PositionsUnordered",
            Self::Standby => "Standby",
            Self::Store(_) => "Store",
        }
    }
}

/// The name, and the sentence that says what to do.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.name())
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

/// What a failed first connection means: which server and database it was, and never the password.
pub(crate) fn connect_error(server: &PgConnectOptions, error: StoreError) -> OpenError {
    let StoreError::Unavailable(cause) = error else { return error.into() };
    let database = server.get_database().unwrap_or_else(|| server.get_username());
    let (host, port) = (server.get_host(), server.get_port());
    StoreError::unavailable(format!("database `{database}` at {host}:{port}: {cause}")).into()
}

/// What a failed statement means for the caller. Nothing was written.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    let Some(state) = state(&error) else {
        return other_error(error);
    };
    match state.as_str() {
        // Serialization failure, deadlock, a lock that was held for too long. The server calls the
        // last one a cancelled statement where another wait had just begun; and so is one that took
        // too long.
        "40001" | "40P01" | "55P03" | "57014" => StoreError::Busy,
        "SQ001" => Invalid::TenantsDiffer.into(),
        "SQ003" => corrupt(
            "a handler or projection has ended the transaction, undone what was written in it, or \
             changed its role or tenant; it must not COMMIT, ROLLBACK or SET those",
        ),
        "22008" => Invalid::Time.into(),
        // What was prepared in the session is gone, or a table has changed: a new session helps.
        "26000" | "42P05" | "0A000" => unavailable(&error),
        // NUL in text, text that is not UTF-8, JSON that jsonb or json cannot hold.
        "22021" | "22P05" | "22P02" => {
            Invalid::Json { reason: "the database refused it".into() }.into()
        }
        // The role lacks a right; the setting is wrong.
        "42501" | "SQ002" => unavailable(&error),
        // A constraint. The message names it, and never values.
        _ if state.starts_with("23") => {
            corrupt(format!("a constraint refused what was written: {}", brief(&error)))
        }
        // Lost connections, shut down, out of something, broken system, timed out transactions.
        _ if is_trouble(&state) => unavailable(&error),
        // Everything else is a fault of ours or of somebody who changed the tables.
        _ => corrupt(format!("a statement failed: {}", brief(&error))),
    }
}

/// What a failed statement means that commits by itself, or a failed COMMIT: when the connection
/// was lost, nobody can tell.
pub(crate) fn commit_error(error: sqlx::Error) -> StoreError {
    if is_lost(&error) {
        tracing::error!(%error, "a commit has an unknown outcome");
        return StoreError::Unknown;
    }
    store_error(error)
}

/// Whether the connection was lost with this error.
fn is_lost(error: &sqlx::Error) -> bool {
    match state(error) {
        Some(state) => {
            let ended = ["08", "57P"].iter().any(|class| state.starts_with(class));
            ended || matches!(state.as_str(), "25P03" | "25P04")
        }
        None => matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::WorkerCrashed
        ),
    }
}

/// Whether a session is of no use any more after this error of user code.
pub(crate) fn is_damaged(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let error = error.downcast_ref::<sqlx::Error>().and_then(state);
    error.is_some_and(|state| matches!(state.as_str(), "26000" | "42P05" | "0A000"))
}

/// Whether a statement failed because sequor's tables or functions are not there.
pub(crate) fn is_not_installed(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| matches!(state.as_str(), "3F000" | "42P01" | "42883"))
}

/// Whether a statement failed because the role lacks a right.
pub(crate) fn is_not_granted(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| state == "42501")
}

/// Whether a statement has waited too long for somebody else's lock, see [`store_error`].
pub(crate) fn is_blocked(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| matches!(state.as_str(), "55P03" | "57014"))
}

/// Whether the server has ended a statement so that others could go on, in a deadlock or at a stricter
/// level than ours.
pub(crate) fn is_deadlock(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| matches!(state.as_str(), "40001" | "40P01"))
}

/// Whether the short call for one command has met an archived key, and leaves the command to the
/// call for batches.
pub(crate) fn is_archived(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| state == "SQ005")
}

/// Why a month of the archive was not dropped, where it was refused.
pub(crate) fn kept_month(error: &sqlx::Error) -> Option<MonthDrop> {
    match state(error)?.as_str() {
        "SQ004" => Some(MonthDrop::NotOver),
        "SQ006" => Some(MonthDrop::Missing),
        "SQ007" => Some(MonthDrop::Changed),
        _ => None,
    }
}

/// What a projection's error means.
pub(crate) fn projection_error(name: &str, error: ProjectionError) -> StoreError {
    user_error(&format!("projection `{name}` failed"), error)
}

/// What an error of user code means. The database's own troubles keep their meaning.
pub(crate) fn user_error(whose: &str, error: ProjectionError) -> StoreError {
    let error = match error.downcast::<sqlx::Error>() {
        Ok(error) if state(&error).is_some_and(|state| state == "42501") => {
            corrupt(not_walled(&brief(&error)))
        }
        // A statement of theirs that takes too long does so again.
        Ok(error) if state(&error).is_some_and(|state| state == "57014") => unavailable(&error),
        Ok(error) => store_error(*error),
        Err(error) => corrupt(error.to_string()),
    };
    let StoreError::Corrupt { what } = error else {
        return error;
    };
    corrupt(format!("{whose}: {what}"))
}

/// The SQLSTATE, if the error is the server's.
fn state(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

/// The server's message without its details, which quote values.
fn brief(error: &sqlx::Error) -> String {
    let Some(database) = error.as_database_error() else { return error.to_string() };
    match database.constraint() {
        Some(constraint) => format!("{} ({constraint})", state(error).unwrap_or_default()),
        None => database.message().to_owned(),
    }
}

/// What to do about a table that user SQL may not use.
fn not_walled(message: &str) -> String {
    // The server names the table nowhere else, and in its own language.
    let is_plain =
        |name: &&str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    let named = message.strip_prefix("permission denied for table ").filter(is_plain);
    let table = named.unwrap_or("table");
    format!(
        "{message}; user SQL runs as `sequor_app`; if the table is yours, run, as its owner: SELECT \
         sequor.wall('{table}'); a GRANT alone would let every tenant's commands see all rows"
    )
}

/// A server that cannot be used now, in its words and with what to do. Not the driver's own words,
/// which name a line of the server's source.
fn unavailable(error: &sqlx::Error) -> StoreError {
    let Some(state) = state(error) else {
        let is_refused =
            matches!(error, sqlx::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused);
        let advice = if is_refused { REFUSED } else { "" };
        return StoreError::unavailable(format!("{error}{advice}"));
    };
    let message = brief(error);
    let advice = match state.as_str() {
        "3D000" => format!("; create it: CREATE DATABASE {}", quoted(&message).unwrap_or("…")),
        // Poolers speak English only.
        "08P01" if message.contains("startup parameter") => LOOKS_POOLED.to_owned(),
        _ => String::new(),
    };
    StoreError::unavailable(format!("{message} ({state}){advice}"))
}

const REFUSED: &str = "; is the server running, and is this its host and port?";
const LOOKS_POOLED: &str = "; this looks like a pooler: set `PostgresSettings::pooled`; `install` needs \
     the server itself";

/// The first name in quotes.
fn quoted(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once('"')?;
    rest.split_once('"').map(|(name, _)| name)
}

/// What a failed migration says, without lines of the server's source.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what did not come from the server is said by the driver, whatever it is called"
)]
fn migrate_brief(error: &MigrateError) -> String {
    match error {
        MigrateError::Execute(error) => brief(error),
        MigrateError::ExecuteMigration(error, number) => {
            format!("migration {number}: {}", brief(error))
        }
        other => other.to_string(),
    }
}

fn is_trouble(state: &str) -> bool {
    ["08", "53", "57", "58", "XX"].iter().any(|class| state.starts_with(class))
        || matches!(state, "25P03" | "25P04" | "25006" | "28000" | "28P01" | "3D000")
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is no trouble of the connection is a fault of ours, whatever it is called"
)]
fn other_error(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::Configuration(_)
        | sqlx::Error::PoolClosed
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => unavailable(&error),
        _ => corrupt(format!("the driver failed: {error}")),
    }
}

pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_says_what_to_do_too() {
        let error = OpenError::NotInstalled { found: 0, needed: 8 };
        assert_eq!(format!("{error:?}"), format!("NotInstalled: {error}"));
        assert!(error.to_string().contains("`sequor::postgres::install`"), "{error}");
    }

    #[test]
    fn a_table_without_its_wall_is_named_where_the_server_names_it() {
        let named = not_walled("permission denied for table wallets");
        assert!(named.contains("SELECT sequor.wall('wallets')"), "{named}");
        for other in ["keine Berechtigung für Tabelle wallets", "permission denied for table O'x"]
        {
            assert!(not_walled(other).contains("SELECT sequor.wall('table')"), "{other}");
        }
    }
}
