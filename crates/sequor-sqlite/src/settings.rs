//! What can be chosen about a store, with bounds.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// A commit that was answered survives a loss of power: one flush a batch.
    #[default]
    Full,
    /// A commit that was answered survives a crash of the process; the last ones may be lost with
    /// the power. The file stays whole.
    Normal,
}

/// What can be chosen about a store. Checked when it is opened.
///
/// ```
/// use sequor_sqlite::SqliteSettings;
///
/// let settings: SqliteSettings = "sqlite://billing.db".parse()?;
/// assert_eq!(settings.path.to_str(), Some("billing.db"));
/// assert!(":memory:".parse::<SqliteSettings>().is_err());
/// # Ok::<(), sequor_sqlite::SettingsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteSettings {
    /// The file; created, with its tables, when it is missing. Beside it live `-wal`, `-shm` and
    /// `.lock`.
    pub path: PathBuf,
    /// When a commit counts as durable. Default [`Synchronous::Full`]; `Normal` saves the flush,
    /// which is most of what a lone command costs.
    pub synchronous: Synchronous,
    /// How long a call waits for the write connection, and the write connection for another
    /// process's lock, before it answers `Busy`. Default 5 s, 1 ms to 10 min; longer waits hide
    /// slow handlers, shorter ones refuse bursts.
    pub writer_wait_max: Duration,
    /// Commits in one transaction at most. Default 256, 1 to 4,096; larger batches save little
    /// more and make the first of them wait longer.
    pub batch_commits_max: usize,
    /// Bytes of JSON in one batch at most (a single larger commit still passes). Default 4 MiB,
    /// 64 KiB to 256 MiB; costs about three times as much memory while the batch is written.
    pub batch_bytes_max: usize,
    /// Commits that wait for the writer at most; further callers wait before the queue. Default
    /// 1,024, 1 to 65,536; costs the memory of the waiting commits.
    pub queue_commits_max: usize,
    /// How long a batch waits for as many commits as the last one answered. Default 100 µs, 0 to
    /// 10 ms; 0 makes the batches of a few callers small. A lone caller never waits.
    pub linger: Duration,
    /// Connections that read at most. Default 4, 1 to 64; each costs a thread and a page cache.
    pub readers_max: usize,
    /// Page cache of each connection at most, in bytes. Default 64 MiB, 1 MiB to 16 GiB; too small
    /// a cache makes random keys read the file.
    pub cache_bytes_max: u64,
    /// The file's size at most, in bytes. Default `None` (as large as the disk), from 1 MiB; a
    /// full file answers `Unavailable` until there is room again.
    pub file_bytes_max: Option<u64>,
}

impl SqliteSettings {
    /// The defaults, for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            synchronous: Synchronous::Full,
            writer_wait_max: Duration::from_secs(5),
            batch_commits_max: 256,
            batch_bytes_max: 4 << 20,
            queue_commits_max: 1_024,
            linger: Duration::from_micros(100),
            readers_max: 4,
            cache_bytes_max: 64 << 20,
            file_bytes_max: None,
        }
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// [`SettingsError`] names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        check_path(&self.path)?;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let ranges = [
            ("writer_wait_max (µs)", micros(self.writer_wait_max), 1_000, 600_000_000),
            ("batch_commits_max", count(self.batch_commits_max), 1, 4_096),
            ("batch_bytes_max", count(self.batch_bytes_max), 64 << 10, 256 << 20),
            ("queue_commits_max", count(self.queue_commits_max), 1, 65_536),
            ("linger (µs)", micros(self.linger), 0, 10_000),
            ("readers_max", count(self.readers_max), 1, 64),
            ("cache_bytes_max", self.cache_bytes_max, 1 << 20, 16 << 30),
            ("file_bytes_max", self.file_bytes_max.unwrap_or(u64::MAX), 1 << 20, u64::MAX),
        ];
        for (setting, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Err(SettingsError::OutOfRange { setting, value, min, max });
            }
        }
        Ok(())
    }
}

impl FromStr for SqliteSettings {
    type Err = SettingsError;

    /// Takes `sqlite://file.db`, `sqlite:file.db` or a bare path, with the defaults.
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let path =
            text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
        if let Some((_, parameters)) = path.split_once('?') {
            return Err(SettingsError::Parameters { parameters: parameters.to_owned() });
        }
        check_path(Path::new(path))?;
        Ok(Self::new(path))
    }
}

fn check_path(path: &Path) -> Result<(), SettingsError> {
    match path.to_str() {
        Some("") => Err(SettingsError::NoPath),
        Some(":memory:" | "file::memory:") => Err(SettingsError::InMemory),
        _ => Ok(()),
    }
}

/// What is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// There is no path.
    #[error(
        "the path of the SQLite file is empty; say where it lies, such as `sqlite://billing.db`"
    )]
    NoPath,
    /// The path names no file.
    #[error("`:memory:` keeps nothing; take a file, or the memory store (`sequor-memory`)")]
    InMemory,
    /// The address has parameters.
    #[error("`?{parameters}`: the address takes no parameters; set them on `SqliteSettings`")]
    Parameters {
        /// As given.
        parameters: String,
    },
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
