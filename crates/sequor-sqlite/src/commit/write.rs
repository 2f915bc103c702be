//! Writes the rows of a batch: one trip, one statement a table, however many commits.

use futures_util::TryStreamExt;
use sequor_core::{Commit, Invalid, StoreError};
use sqlx::sqlite::SqliteArguments;
use sqlx::{Either, Executor, Sqlite, SqliteConnection};

use super::judge::Numbered;
use super::ledger::BatchLedger;
use super::rows::Rows;
use crate::connection::WriteConnection;
use crate::error::{commit_error, is_constraint, store_error};
use crate::row;

macro_rules! insert {
    () => {
        concat!(
            include_str!("../sql/check_unchanged.sql"),
            include_str!("../sql/insert_commands.sql"),
            include_str!("../sql/insert_keys.sql"),
            include_str!("../sql/insert_events.sql"),
            include_str!("../sql/write_versions.sql"),
        )
    };
}

macro_rules! insert_unique {
    () => {
        concat!(
            insert!(),
            include_str!("../sql/release_unique.sql"),
            include_str!("../sql/claim_unique.sql"),
        )
    };
}

const INSERT: &str = insert!();
const INSERT_UNIQUE: &str = insert_unique!();
const WHOLE: &str =
    concat!(include_str!("../sql/begin.sql"), insert!(), include_str!("../sql/commit.sql"));
const WHOLE_UNIQUE: &str =
    concat!(include_str!("../sql/begin.sql"), insert_unique!(), include_str!("../sql/commit.sql"));
/// How many statements of a whole come before its COMMIT: BEGIN and those of `INSERT`.
const BEFORE_COMMIT: usize = 6;
const BEFORE_COMMIT_UNIQUE: usize = 8;

/// Why a batch was not written.
#[derive(Debug)]
pub(crate) struct WriteFailure {
    /// For the caller.
    pub(crate) error: StoreError,
    /// What was known before the write no longer held; judging again helps.
    pub(crate) is_stale: bool,
}

impl From<StoreError> for WriteFailure {
    fn from(error: StoreError) -> Self {
        Self { error, is_stale: false }
    }
}

fn failure(error: sqlx::Error) -> WriteFailure {
    let is_stale = is_constraint(&error);
    WriteFailure { error: store_error(error), is_stale }
}

/// Writes the rows inside an open transaction.
pub(crate) async fn write_rows(
    commits: &[(&Commit, &Numbered)],
    ledger: &BatchLedger,
    connection: &mut SqliteConnection,
) -> Result<(), WriteFailure> {
    let sql = if ledger.has_unique() { INSERT_UNIQUE } else { INSERT };
    let query = bind(sql, commits, ledger)?;
    query.execute(connection).await.map_err(failure)?;
    Ok(())
}

/// Writes the rows in a transaction of their own, BEGIN and COMMIT in the same trip.
pub(crate) async fn write_whole(
    commits: &[(&Commit, &Numbered)],
    ledger: &BatchLedger,
    connection: &mut WriteConnection,
) -> Result<(), WriteFailure> {
    let (sql, before_commit) = match ledger.has_unique() {
        true => (WHOLE_UNIQUE, BEFORE_COMMIT_UNIQUE),
        false => (WHOLE, BEFORE_COMMIT),
    };
    let query = bind(sql, commits, ledger)?;
    connection.expect_commit();
    let mut done = 0;
    let mut steps = connection.sqlite().fetch_many(query);
    let ended = loop {
        match steps.try_next().await {
            Ok(Some(Either::Left(_))) => done += 1,
            Ok(Some(Either::Right(_))) => {}
            Ok(None) => break Ok(()),
            Err(error) if done == before_commit => break Err(commit_error(error).into()),
            Err(error) => break Err(failure(error)),
        }
    };
    drop(steps);
    match &ended {
        // BEGIN itself has failed.
        Err(_) if done == 0 => connection.expect_no_commit(),
        Err(_) => connection.rollback_whole().await,
        Ok(()) => connection.expect_no_commit(),
    }
    ended
}

// Each of these statements has one parameter, a plain `?`. The driver hands arguments out in order,
// statement by statement; numbered ones would start anew in each, and gaps between them confuse it.
type Query = sqlx::query::Query<'static, Sqlite, SqliteArguments>;

fn bind(
    sql: &'static str,
    commits: &[(&Commit, &Numbered)],
    ledger: &BatchLedger,
) -> Result<Query, StoreError> {
    let mut rows = BatchRows::new();
    for (commit, numbered) in commits {
        rows.append(commit, numbered)?;
    }
    let mut versions = Rows::new();
    for (stream, version) in ledger.moved_versions() {
        versions.stream(stream).number(version.get());
    }
    let query = sqlx::query(sql)
        .bind(ledger.data_version)
        .bind(rows.commands.into_text())
        .bind(rows.keys.into_text())
        .bind(rows.events.into_text())
        .bind(versions.into_text());
    if !ledger.has_unique() {
        return Ok(query);
    }
    let (mut releases, mut claims) = (Rows::new(), Rows::new());
    for (tenant, unique) in ledger.released() {
        releases.row().uuid(tenant.as_uuid()).text(unique.scope.as_str()).text(&unique.value);
    }
    for (tenant, unique, holder) in ledger.claimed() {
        let columns = claims.row().uuid(tenant.as_uuid());
        columns
            .text(unique.scope.as_str())
            .text(&unique.value)
            .text(holder.aggregate.as_str())
            .text(holder.id.as_str());
    }
    Ok(query.bind(releases.into_text()).bind(claims.into_text()))
}

/// The rows of a batch, table by table.
#[derive(Debug)]
struct BatchRows {
    commands: Rows,
    keys: Rows,
    events: Rows,
}

impl BatchRows {
    fn new() -> Self {
        Self { commands: Rows::new(), keys: Rows::new(), events: Rows::new() }
    }

    fn append(&mut self, commit: &Commit, numbered: &Numbered) -> Result<(), StoreError> {
        self.append_command(commit, numbered);
        if let Some(key) = &commit.meta.key {
            let columns = self.keys.row().uuid(commit.meta.tenant.as_uuid());
            columns.text(key.as_str()).number(numbered.number);
        }
        for (position, event) in (numbered.first_position..).zip(&commit.events) {
            let write = commit.streams.get(event.stream);
            let stream = &write.ok_or(Invalid::EventWithoutStream)?.stream;
            self.events
                .row()
                .number(position)
                .uuid(stream.tenant.as_uuid())
                .text(stream.aggregate.as_str())
                .text(stream.id.as_str())
                .number(event.version.get())
                .text(event.name.name)
                .number(event.name.schema_version.into())
                .text(event.payload.as_str())
                .number(numbered.number);
        }
        Ok(())
    }

    fn append_command(&mut self, commit: &Commit, numbered: &Numbered) {
        let (meta, record) = (&commit.meta, &numbered.record);
        let columns = self
            .commands
            .row()
            .number(numbered.number)
            .uuid(&meta.command_id.0)
            .uuid(meta.tenant.as_uuid())
            .text_or_null(meta.key.as_ref().map(|key| key.as_str()))
            .text(commit.name.as_str())
            .text(commit.payload.as_str());
        let columns = match &commit.fingerprint {
            Some(fingerprint) => columns.bytes(fingerprint.as_bytes()),
            None => columns.null(),
        };
        let columns = columns
            .text(commit.output.as_str())
            .text_or_null(meta.actor.as_ref().map(|actor| actor.as_str()))
            .uuid(&meta.correlation_id.0);
        let columns = match &meta.causation_id {
            Some(id) => columns.uuid(id),
            None => columns.null(),
        };
        let columns =
            columns.signed(meta.time.as_micros()).text(&row::streams_text(&record.streams));
        match record.position {
            Some(position) => columns.number(position.get()),
            None => columns.null(),
        };
    }
}
