//! The limit: the same rows written by a bare sqlx loop, and a bare primary-key read.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqlitePool};

use super::domain::{Keys, tenant};
use super::load::Work;

const INSERT_COMMAND: &str = "INSERT INTO commands (command_id, tenant_id, key, name, payload, fingerprint, output, correlation_id, recorded_at, streams, position) VALUES (?, ?, ?, 'deposit', ?, ?, ?, ?, ?, ?, ?) RETURNING number";
const INSERT_EVENT: &str = "INSERT INTO events (position, tenant_id, aggregate, aggregate_id, version, name, schema_version, payload, command) VALUES (?, ?, 'account', ?, ?, 'deposited', 1, ?, ?)";
const WRITE_VERSION: &str = "INSERT INTO streams (tenant_id, aggregate, aggregate_id, version) VALUES (?, 'account', ?, ?) ON CONFLICT (tenant_id, aggregate, aggregate_id) DO UPDATE SET version = excluded.version";
const INSERT_KEY: &str = "INSERT INTO idempotency_keys (tenant_id, key, command) VALUES (?, ?, ?)";
const READ_KEY: &str = "SELECT command FROM idempotency_keys WHERE tenant_id = ? AND key = ?";

/// Writes the rows of deposits on a thousand accounts, so many commands in a transaction, for so
/// long; answers commands per second. The tables must be there already.
pub(super) async fn write(path: &Path, per_transaction: u64, duration: Duration) -> Result<f64> {
    let mut connection = options(path).connect().await?;
    let (start, mut number) = (Instant::now(), 0_u64);
    while start.elapsed() < duration {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        for _ in 0..per_transaction {
            number += 1;
            write_command(&mut transaction, number).await?;
        }
        transaction.commit().await?;
    }
    let seconds = start.elapsed().as_secs_f64();
    connection.close().await?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 commands")]
    Ok(number as f64 / seconds)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("cache_size", "-65536")
}

async fn write_command(connection: &mut SqliteConnection, number: u64) -> Result<()> {
    let tenant = tenant()?;
    let tenant = tenant.as_uuid().as_bytes().as_slice();
    let key = Keys::TimeOrdered.text(number);
    let (account, version) = ((number % 1_000).to_string(), i64::try_from(number / 1_000 + 1)?);
    let id = u128::from(number).to_be_bytes();
    let position = i64::try_from(number)?;
    let row: i64 = sqlx::query_scalar(INSERT_COMMAND)
        .bind(id.as_slice())
        .bind(tenant)
        .bind(key.as_deref())
        .bind(format!("{{\"account\":{account},\"cents\":1}}"))
        .bind([7_u8; 33].as_slice())
        .bind(version.to_string())
        .bind(id.as_slice())
        .bind(position)
        .bind(format!("[[\"account\",\"{account}\",{version}]]"))
        .bind(position)
        .fetch_one(&mut *connection)
        .await?;
    sqlx::query(INSERT_EVENT)
        .bind(position)
        .bind(tenant)
        .bind(account.as_str())
        .bind(version)
        .bind("{\"cents\":1}")
        .bind(row)
        .execute(&mut *connection)
        .await?;
    let write_version = sqlx::query(WRITE_VERSION).bind(tenant).bind(account.as_str());
    write_version.bind(version).execute(&mut *connection).await?;
    sqlx::query(INSERT_KEY).bind(tenant).bind(key).bind(row).execute(&mut *connection).await?;
    Ok(())
}

/// Reads one key's row by its primary key, through a pool without pings.
pub(super) struct ReadKey {
    pool: SqlitePool,
    keys: u64,
}

impl ReadKey {
    /// Reads among the first `keys` time-ordered keys of a file.
    pub(super) async fn open(path: &Path, keys: u64) -> Result<Self> {
        let pool = sqlx::sqlite::SqlitePoolOptions::new()
            .max_connections(4)
            .test_before_acquire(false)
            .connect_with(options(path).read_only(true))
            .await?;
        Ok(Self { pool, keys })
    }
}

impl Work for ReadKey {
    async fn run(&self, number: u64) -> Result<()> {
        let tenant = tenant()?;
        let key = Keys::TimeOrdered.text(number % self.keys);
        let row: Option<i64> = sqlx::query_scalar(READ_KEY)
            .bind(tenant.as_uuid().as_bytes().as_slice())
            .bind(key)
            .fetch_optional(&self.pool)
            .await?;
        anyhow::ensure!(row.is_some(), "key {number} is missing");
        Ok(())
    }
}

/// Fills a file with so many commands and their keys, in large transactions.
pub(super) async fn fill(path: &Path, keys: Keys, count: u64) -> Result<()> {
    let mut connection = options(path).connect().await?;
    let tenant = tenant()?;
    let mut number = 0_u64;
    while number < count {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let end = count.min(number + 10_000);
        for row in number..end {
            let id = u128::from(row).to_be_bytes();
            let command: i64 = sqlx::query_scalar(INSERT_COMMAND)
                .bind(id.as_slice())
                .bind(tenant.as_uuid().as_bytes().as_slice())
                .bind(keys.text(row))
                .bind("{\"account\":1,\"cents\":1}")
                .bind([7_u8; 33].as_slice())
                .bind("1")
                .bind(id.as_slice())
                .bind(0_i64)
                .bind("[]")
                .bind(None::<i64>)
                .fetch_one(&mut *transaction)
                .await?;
            sqlx::query(INSERT_KEY)
                .bind(tenant.as_uuid().as_bytes().as_slice())
                .bind(keys.text(row))
                .bind(command)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        number = end;
    }
    connection.close().await?;
    Ok(())
}
