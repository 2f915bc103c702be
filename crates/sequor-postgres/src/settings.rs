//! What can be chosen about a store, with bounds.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

const PARTITIONS: NonZeroU16 = NonZeroU16::new(16).unwrap();

/// What can be chosen about a store. Checked when it is opened.
///
/// ```
/// use sequor_postgres::PostgresSettings;
///
/// let settings: PostgresSettings = "postgres://bus@db.internal/billing".parse()?;
/// assert_eq!(settings.server.get_database(), Some("billing"));
/// assert!("mysql://db.internal/billing".parse::<PostgresSettings>().is_err());
/// # Ok::<(), sequor_postgres::SettingsError>(())
/// ```
#[derive(Clone)]
pub struct PostgresSettings {
    /// Server, database, role and password. The role must be a member of `sequor_app`, and of
    /// `sequor_system` where the log is read; it should own nothing.
    pub server: PgConnectOptions,
    /// Whether `server` is a pooler that may give each transaction another session of the server,
    /// such as PgBouncer in transaction mode. Default false: sequor has its sessions for itself.
    ///
    /// Costs: statements travel as text without being prepared, so the server parses each one, and
    /// what is not ASCII in them takes up to five times its bytes. Round trips stay what they are.
    ///
    /// A pooler passes on no settings, so whoever runs the server sets them on the role that logs
    /// in, and has the pooler reconnect:
    ///
    /// ```sql
    /// ALTER ROLE bus SET default_transaction_isolation = 'read committed'; -- else refused
    /// ALTER ROLE bus SET statement_timeout = '30s';       -- in place of `statement_time_max`
    /// ALTER ROLE bus SET idle_in_transaction_session_timeout = '30s'; -- of `idle_time_max`
    /// ALTER ROLE bus SET client_connection_check_interval = '1s';
    /// ALTER ROLE bus SET jit = off;                       -- compiling costs more than it gains
    /// ```
    ///
    /// SQL of your own, in handlers and projections, must use `.persistent(false)`, since statements
    /// that are prepared by name belong to a session. It is in one session until its transaction
    /// ends, and whatever it sets, opens, locks or listens to there ends with the transaction;
    /// triggers that are put off until COMMIT run just before. It must not end the transaction
    /// itself, nor `PREPARE`: that would stay for whoever gets the session next.
    ///
    /// [`install`](crate::install) wants the server itself.
    pub pooled: bool,
    /// How long a call waits for a place in the queue or for a connection, before it answers
    /// `Busy`. Default 5 s, 1 ms to 10 min; longer waits hide slow handlers, shorter ones refuse
    /// bursts.
    pub wait_max: Duration,
    /// How long a command waits for a key, a stream or a value that another transaction holds,
    /// before it answers `Busy`. Default 5 s, 1 ms to 10 min; each waiting command has a
    /// connection.
    pub lock_wait_max: Duration,
    /// How long a batch waits for one such lock before the command that needs it goes alone. Default
    /// 5 ms, 1 ms to 1 s; it is what its neighbours lose, and shorter waits send more commands alone
    /// where several processes write the same streams.
    pub batch_wait_max: Duration,
    /// How long one statement may take on the server. Default 30 s, 100 ms to 1 h; a handler's own
    /// statements count too.
    pub statement_time_max: Duration,
    /// How long a transaction may stand still between two statements before the server ends it.
    /// Default 30 s, 100 ms to 1 h; a handler that waits for the world holds its locks as long.
    pub idle_time_max: Duration,
    /// How long reading the log waits for writers that began before what is visible, before it
    /// answers with what lies below them. Default 200 ms, 0 to 10 s.
    pub mark_wait_max: Duration,
    /// Commits in one transaction at most. Default 256, 1 to 4,096; larger batches save little
    /// more and make the first of them wait longer.
    pub batch_commits_max: usize,
    /// Bytes of JSON in one batch at most (a single larger commit still passes). Default 4 MiB,
    /// 64 KiB to 64 MiB; costs about three times as much memory while the batch is sent.
    pub batch_bytes_max: usize,
    /// Commits that wait or are under way at most; further callers wait before the queue. Default
    /// 1,024, 1 to 65,536; costs the memory of the waiting commits.
    pub queue_commits_max: usize,
    /// How long a batch waits for the callers that the last one has answered to come back. Default
    /// 100 µs, 0 to 10 ms; 0 makes the batches of a few callers small, and longer waits keep a core
    /// busy. Whoever is alone never waits, except once, right after company.
    pub linger: Duration,
    /// Connections that commit batches at most. Default 2, 1 to 16; one more joins only when 8 commits
    /// wait, or a whole batch of them where that is less.
    pub writers_max: usize,
    /// Connections for loads, open transactions and commands that wait for a lock, at most.
    /// Default 8, 2 to 1,024; about four for each core of the server are enough.
    pub connections_max: usize,
    /// Connections that read the log at most; each has its partitions. Default 2, 1 to 64; opened
    /// when the log is read for the first time.
    pub log_readers_max: usize,
    /// Into how many partitions [`install`](crate::install) spreads the tenants of a new store: the
    /// unit of ordered reading. Default 16, 1 to 1,024; fixed for ever once the store is there.
    pub partitions: NonZeroU16,
}

impl PostgresSettings {
    /// The defaults, for a database.
    #[must_use]
    pub fn new(server: PgConnectOptions) -> Self {
        Self {
            server,
            pooled: false,
            wait_max: Duration::from_secs(5),
            lock_wait_max: Duration::from_secs(5),
            batch_wait_max: Duration::from_millis(5),
            statement_time_max: Duration::from_secs(30),
            idle_time_max: Duration::from_secs(30),
            mark_wait_max: Duration::from_millis(200),
            batch_commits_max: 256,
            batch_bytes_max: 4 << 20,
            queue_commits_max: 1_024,
            linger: Duration::from_micros(100),
            writers_max: 2,
            connections_max: 8,
            log_readers_max: 2,
            partitions: PARTITIONS,
        }
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// [`SettingsError::OutOfRange`] names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let ranges = [
            ("wait_max (µs)", micros(self.wait_max), 1_000, 600_000_000),
            ("lock_wait_max (µs)", micros(self.lock_wait_max), 1_000, 600_000_000),
            ("batch_wait_max (µs)", micros(self.batch_wait_max), 1_000, 1_000_000),
            ("statement_time_max (µs)", micros(self.statement_time_max), 100_000, 3_600_000_000),
            ("idle_time_max (µs)", micros(self.idle_time_max), 100_000, 3_600_000_000),
            ("mark_wait_max (µs)", micros(self.mark_wait_max), 0, 10_000_000),
            ("batch_commits_max", count(self.batch_commits_max), 1, 4_096),
            ("batch_bytes_max", count(self.batch_bytes_max), 64 << 10, 64 << 20),
            ("queue_commits_max", count(self.queue_commits_max), 1, 65_536),
            ("linger (µs)", micros(self.linger), 0, 10_000),
            ("writers_max", count(self.writers_max), 1, 16),
            ("connections_max", count(self.connections_max), 2, 1_024),
            ("log_readers_max", count(self.log_readers_max), 1, 64),
            ("partitions", self.partitions.get().into(), 1, 1_024),
        ];
        for (setting, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Err(SettingsError::OutOfRange { setting, value, min, max });
            }
        }
        Ok(())
    }
}

impl FromStr for PostgresSettings {
    type Err = SettingsError;

    /// Takes `postgres://role:password@host:port/database`, with the defaults.
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let is_postgres = text.starts_with("postgres://") || text.starts_with("postgresql://");
        if !is_postgres {
            return Err(SettingsError::Scheme);
        }
        // Not the driver's own message: it may quote the address, and with it the password.
        text.parse().map(Self::new).map_err(|_| SettingsError::Address)
    }
}

/// Without the password.
impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSettings")
            .field("host", &self.server.get_host())
            .field("port", &self.server.get_port())
            .field("database", &self.server.get_database())
            .field("role", &self.server.get_username())
            .finish_non_exhaustive()
    }
}

/// What is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The address names another kind of database.
    #[error("the address does not begin with `postgres://`")]
    Scheme,
    /// The address cannot be read.
    #[error("the address is not of the form `postgres://role:password@host:port/database`")]
    Address,
    /// The tables are installed in one session, and a pooler may give several.
    #[error("tables are not installed through a pooler; name the server itself")]
    InstallPooled,
    /// A setting is out of its range.
    #[error("{setting} is {value}; it takes {min} to {max}")]
    OutOfRange {
        /// Which setting, with its unit.
        setting: &'static str,
        /// What it is.
        value: u64,
        /// The least it may be.
        min: u64,
        /// The most it may be.
        max: u64,
    },
}
