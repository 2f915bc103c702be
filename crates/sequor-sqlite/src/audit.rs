//! Proving that what is stored is whole: one statement a check, all of them under one snapshot.
//!
//! A reader's connection in a transaction that only reads: the writer goes on meanwhile, and its log
//! cannot be folded into the file before the audit has ended. Each check answers with the first rows
//! that are wrong and the count of all of them, so that little is kept here, whatever is found.

use async_trait::async_trait;
use sequor_core::StoreError;
use sequor_core::audit::{AuditReport, AuditSettings, Finding};
use sequor_core::ports::Audit;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, SqliteConnection};

use crate::error::store_error;
use crate::row::audit as row;
use crate::store::SqliteStore;

/// A statement whose rows are wrong, and what they say. The first column is how many there are.
struct Check {
    sql: &'static str,
    read: fn(&SqliteRow) -> Result<Finding, StoreError>,
}

/// The file, and the log in it: positions and versions.
const LOG: [Check; 5] = [
    Check { sql: include_str!("sql/audit_file.sql"), read: row::damage },
    Check { sql: include_str!("sql/audit_drawn.sql"), read: row::positions_behind },
    Check { sql: include_str!("sql/audit_order.sql"), read: row::out_of_order },
    Check { sql: include_str!("sql/audit_versions.sql"), read: row::versions },
    Check { sql: include_str!("sql/audit_streams.sql"), read: row::stream_version },
];

/// Commands, and what they remember of their events.
const COMMANDS: [Check; 4] = [
    Check { sql: include_str!("sql/audit_events.sql"), read: row::event_without_command },
    Check { sql: include_str!("sql/audit_commands.sql"), read: row::command_position },
    Check { sql: include_str!("sql/audit_double_commands.sql"), read: row::command_twice },
    Check { sql: include_str!("sql/audit_command_streams.sql"), read: row::command_stream },
];

/// Keys and their commands.
const KEYS: [Check; 3] = [
    Check { sql: include_str!("sql/audit_keys.sql"), read: row::key },
    Check { sql: include_str!("sql/audit_lost_keys.sql"), read: row::command_without_key },
    Check { sql: include_str!("sql/audit_reservations.sql"), read: row::reservation },
];

/// Unique values, and their holders.
const VALUES: [Check; 2] = [
    Check { sql: include_str!("sql/audit_holders.sql"), read: row::holder_unknown },
    Check { sql: include_str!("sql/audit_scopes.sql"), read: row::holds_several },
];

/// Projections, and how far they have come.
const PROJECTIONS: [Check; 2] = [
    Check { sql: include_str!("sql/audit_checkpoints.sql"), read: row::checkpoint_ahead },
    Check { sql: include_str!("sql/audit_projected.sql"), read: row::projected_stream },
];

#[async_trait]
impl Audit for SqliteStore {
    async fn audit(&self, settings: AuditSettings) -> Result<AuditReport, StoreError> {
        let mut reader = self.readers().reader().await?;
        let report = in_snapshot(reader.sqlite()?, settings.within_ranges()).await;
        if report.is_err() {
            reader.discard();
        }
        report
    }
}

async fn in_snapshot(
    connection: &mut SqliteConnection,
    settings: AuditSettings,
) -> Result<AuditReport, StoreError> {
    let begin = include_str!("sql/audit_begin.sql");
    let mut transaction = connection.begin_with(begin).await.map_err(store_error)?;
    let report = audit(&mut transaction, settings).await?;
    // Nothing was written.
    transaction.rollback().await.map_err(store_error)?;
    Ok(report)
}

async fn audit(
    connection: &mut SqliteConnection,
    settings: AuditSettings,
) -> Result<AuditReport, StoreError> {
    let counts = sqlx::query(include_str!("sql/audit_counts.sql")).fetch_one(&mut *connection);
    let mut report = AuditReport::of(row::counts(&counts.await.map_err(store_error)?)?);
    let findings_max = i64::try_from(settings.findings_max).unwrap_or(i64::MAX);
    for check in LOG.iter().chain(&COMMANDS).chain(&KEYS).chain(&VALUES).chain(&PROJECTIONS) {
        let rows = sqlx::query(check.sql).bind(findings_max).fetch_all(&mut *connection).await;
        let rows = rows.map_err(store_error)?;
        let total = row::total(&rows)?;
        report.add(rows.iter().map(|one| readable((check.read)(one))), total);
    }
    Ok(report)
}

/// A row whose columns cannot be read is a finding of its own.
fn readable(finding: Result<Finding, StoreError>) -> Finding {
    finding.unwrap_or_else(|error| Finding::Unreadable { what: error.to_string() })
}
