//! Proving that what is stored is whole: one statement a check, all of them under one snapshot.
//!
//! A transaction of its own, which only reads, and as `sequor_system`, which sees all tenants. It
//! waits for nobody and holds up nobody, apart from who drops a month of the archive. Each check
//! answers with the first rows that are wrong and the count of all of them, so that little is kept
//! here, whatever is found.

use std::time::Duration;

use async_trait::async_trait;
use sequor_core::StoreError;
use sequor_core::audit::{AuditReport, AuditSettings, Finding};
use sequor_core::ports::Audit;
use sqlx::postgres::PgRow;

use crate::connection::Session;
use crate::error::store_error;
use crate::row::audit as row;
use crate::statement::Statement;
use crate::store::PostgresStore;

/// A statement whose rows are wrong, and what they say. The first column is how many there are.
struct Check {
    sql: &'static str,
    read: fn(&PgRow) -> Result<Finding, StoreError>,
}

/// The log: positions, partitions, versions.
const LOG: [Check; 7] = [
    Check { sql: include_str!("sql/audit_positions.sql"), read: row::position_twice },
    Check { sql: include_str!("sql/audit_drawn.sql"), read: row::positions_behind },
    Check { sql: include_str!("sql/audit_partitions.sql"), read: row::wrong_partition },
    Check { sql: include_str!("sql/audit_order.sql"), read: row::out_of_order },
    Check { sql: include_str!("sql/audit_versions.sql"), read: row::versions },
    Check { sql: include_str!("sql/audit_streams.sql"), read: row::stream_version },
    Check { sql: include_str!("sql/audit_makers.sql"), read: row::stream_maker },
];

/// Commands, and what they remember of their events.
const COMMANDS: [Check; 4] = [
    Check { sql: include_str!("sql/audit_events.sql"), read: row::event_without_command },
    Check { sql: include_str!("sql/audit_commands.sql"), read: row::command_position },
    Check { sql: include_str!("sql/audit_command_streams.sql"), read: row::command_stream },
    Check { sql: include_str!("sql/audit_outbox.sql"), read: row::message_without_command },
];

/// Keys, live, archived and purged, and their commands.
const KEYS: [Check; 6] = [
    Check { sql: include_str!("sql/audit_keys.sql"), read: row::key },
    Check { sql: include_str!("sql/audit_double_keys.sql"), read: row::key_twice },
    Check { sql: include_str!("sql/audit_lost_keys.sql"), read: row::command_without_key },
    Check { sql: include_str!("sql/audit_purged_keys.sql"), read: row::keys_purged },
    Check { sql: include_str!("sql/audit_claims.sql"), read: row::claim_left },
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
impl Audit for PostgresStore {
    async fn audit(&self, settings: AuditSettings) -> Result<AuditReport, StoreError> {
        let mut loan = self.pool().lend().await?;
        let mut auditor = Auditor::new(loan.session(), settings.within_ranges());
        let audited = auditor.audit().await;
        let ended = auditor.run(include_str!("sql/audit_end.sql")).await;
        let report = audited.and_then(|report| ended.map(|()| report));
        loan.give_back(&report);
        report
    }
}

/// A session in the middle of an audit.
struct Auditor<'s> {
    session: &'s mut Session,
    findings_max: i64,
    /// How long a check may take on the server, and how long its answer is waited for.
    time_max: Duration,
    limit: Duration,
}

impl<'s> Auditor<'s> {
    fn new(session: &'s mut Session, settings: AuditSettings) -> Self {
        let findings_max = i64::try_from(settings.findings_max).unwrap_or(i64::MAX);
        let (time_max, limit) = (settings.check_time_max, settings.check_time_max + session.limit);
        Self { session, findings_max, time_max, limit }
    }

    async fn audit(&mut self) -> Result<AuditReport, StoreError> {
        self.run(include_str!("sql/audit_begin.sql")).await?;
        self.run(include_str!("sql/audit_take_role.sql")).await?;
        self.run(include_str!("sql/audit_lock_archive.sql")).await?;
        let set_time = self.statement(include_str!("sql/audit_set_time.sql"));
        self.rows(set_time.bind(self.time_max.as_millis().to_string())).await?;
        let counts = self.rows(self.statement(include_str!("sql/audit_counts.sql"))).await?;
        let mut report = AuditReport::of(row::counts(&counts)?);
        for check in LOG.iter().chain(&COMMANDS).chain(&KEYS).chain(&VALUES).chain(&PROJECTIONS) {
            let rows = self.rows(self.statement(check.sql).bind(self.findings_max)).await?;
            let total = row::total(&rows)?;
            report.add(rows.iter().map(|one| readable((check.read)(one))), total);
        }
        Ok(report)
    }

    fn statement<'q>(&self, sql: &'static str) -> Statement<'q> {
        Statement::new(sql, self.session.protocol, self.limit)
    }

    async fn rows(&mut self, statement: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        statement.fetch_all(&mut self.session.postgres).await.map_err(store_error)
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), StoreError> {
        let statement = self.statement(sql);
        statement.execute(&mut self.session.postgres).await.map_err(store_error)
    }
}

/// A row whose columns cannot be read is a finding of its own.
fn readable(finding: Result<Finding, StoreError>) -> Finding {
    finding.unwrap_or_else(|error| Finding::Unreadable { what: error.to_string() })
}
