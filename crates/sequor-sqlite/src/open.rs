//! Opens a file: lock, connection, tables, epoch, writer, in this order.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sequor_core::ports::Listeners;
use sequor_core::{Epoch, StoreError};
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};

use crate::connection::WriteConnection;
use crate::error::{OpenError, store_error};
use crate::readers::Readers;
use crate::row;
use crate::settings::{SqliteSettings, Synchronous};
use crate::store::StoreParts;
use crate::writer::{Writer, WriterParts};

/// The store's own migrations, kept apart from those that a user may run on the same file.
static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!("../../migrations/sqlite");
    migrator.dangerous_set_table_name("_sequor_migrations");
    migrator
});

/// How long a lock may still be held by a store of this process that was just dropped.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

pub(crate) async fn open(settings: SqliteSettings) -> Result<StoreParts, OpenError> {
    settings.check()?;
    let path = whole_path(&settings.path)?;
    check_kind(&path)?;
    let lock = lock(&path).await?;
    let store = |error| OpenError::Store { path: path.clone(), reason: Box::new(error) };
    let options = write_options(&settings, &path);
    let mut first = options.connect().await.map_err(|error| store(store_error(error)))?;
    check_library(&read_library(&mut first).await.map_err(store)?)?;
    // Not `run`: the compiler cannot see that its future is `Send`.
    MIGRATOR
        .run_direct(None, &mut first, false)
        .await
        .map_err(|reason| OpenError::Migrate { path: path.clone(), reason })?;
    let epoch = read_epoch(&mut first).await.map_err(store)?;
    let connection = WriteConnection::over(first).await.map_err(store)?;
    let (stats, listeners) = (Arc::default(), Arc::<Listeners>::default());
    let parts = WriterParts {
        connection,
        options,
        stats: Arc::clone(&stats),
        listeners: Arc::clone(&listeners),
        lock,
    };
    let queue = Writer::start(parts, &settings);
    let readers = Readers::new(
        read_options(&settings, &path),
        settings.readers_max,
        settings.writer_wait_max,
    );
    Ok(StoreParts { queue, readers, epoch, stats, listeners })
}

async fn read_library(connection: &mut SqliteConnection) -> Result<String, StoreError> {
    let read = sqlx::query(include_str!("sql/read_library.sql")).fetch_one(connection).await;
    row::library(&read.map_err(store_error)?)
}

/// The first release with `jsonb_each`.
const LIBRARY_MIN: &str = "3.51.0";

/// Refuses an SQLite that would fail at the first commit.
fn check_library(found: &str) -> Result<(), OpenError> {
    let numbers = |version: &str| -> Vec<u32> {
        version.split('.').map(|part| part.parse().unwrap_or_default()).collect()
    };
    if numbers(found) < numbers(LIBRARY_MIN) {
        return Err(OpenError::LibraryTooOld { found: found.to_owned(), needed: LIBRARY_MIN });
    }
    Ok(())
}

/// One path for one file, whatever way leads to it, so that there is one lock.
fn whole_path(path: &Path) -> Result<PathBuf, OpenError> {
    if let Ok(whole) = path.canonicalize() {
        return Ok(whole);
    }
    let name =
        path.file_name().ok_or_else(|| unusable(path, std::io::ErrorKind::NotFound.into()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Ok(folder.canonicalize().map_err(|reason| unusable(path, reason))?.join(name))
}

fn unusable(path: &Path, reason: std::io::Error) -> OpenError {
    OpenError::Unusable { path: path.to_owned(), reason }
}

/// Refuses what is there and is no database, before anything is put beside it.
fn check_kind(path: &Path) -> Result<(), OpenError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let Ok(kind) = path.metadata() else { return Ok(()) };
    let mut head = Vec::new();
    if kind.is_file() {
        let file = File::open(path).map_err(|reason| unusable(path, reason))?;
        file.take(MAGIC.len() as u64)
            .read_to_end(&mut head)
            .map_err(|reason| unusable(path, reason))?;
    }
    if kind.is_file() && (head.is_empty() || head == MAGIC) {
        return Ok(());
    }
    Err(OpenError::NoDatabase { path: path.to_owned() })
}

/// Takes the file for this process. The lock lies on a file of its own, since locks on the
/// database itself are SQLite's.
async fn lock(path: &Path) -> Result<File, OpenError> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = options.open(&lock).map_err(|reason| unusable(path, reason))?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(reason)) => return Err(unusable(path, reason)),
        }
    }
    Err(OpenError::InUse { path: path.to_owned(), lock })
}

fn write_options(settings: &SqliteSettings, path: &Path) -> SqliteConnectOptions {
    let synchronous = match settings.synchronous {
        Synchronous::Full => SqliteSynchronous::Full,
        Synchronous::Normal => SqliteSynchronous::Normal,
    };
    let options = connect_options(settings, path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(true)
        // What a statement may have to undo would otherwise go through a file in large batches.
        .pragma("temp_store", "MEMORY")
        // Folding the log into the file costs a flush and its pages; pages that many commits touch
        // are folded once for all of them. In pages, hence about 16 MiB.
        .pragma("wal_autocheckpoint", "4000");
    match settings.file_bytes_max {
        // A page has 4,096 bytes.
        Some(bytes) => options.pragma("max_page_count", (bytes >> 12).to_string()),
        None => options,
    }
}

fn read_options(settings: &SqliteSettings, path: &Path) -> SqliteConnectOptions {
    connect_options(settings, path).pragma("query_only", "ON")
}

fn connect_options(settings: &SqliteSettings, path: &Path) -> SqliteConnectOptions {
    // A negative size counts in KiB.
    let cache = format!("-{}", settings.cache_bytes_max >> 10);
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(settings.writer_wait_max)
        .pragma("cache_size", cache)
        .disable_statement_logging()
}

async fn read_epoch(connection: &mut SqliteConnection) -> Result<Epoch, StoreError> {
    let read = sqlx::query(include_str!("sql/read_store.sql")).fetch_one(connection).await;
    row::epoch(&read.map_err(store_error)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_library_is_refused_and_says_what_to_do() {
        for found in ["3.51.0", "3.51.1", "3.100.0", "4.0.0"] {
            assert!(check_library(found).is_ok(), "{found}");
        }
        for found in ["3.50.9", "3.46.0", "2.99.0", "nonsense"] {
            let refused = check_library(found).unwrap_err().to_string();
            assert!(refused.contains("libsqlite3-sys"), "{refused}");
        }
    }
}
