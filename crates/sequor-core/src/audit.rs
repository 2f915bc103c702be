//! What an audit tells: how much was looked at, and every row that is not as it must be.

mod finding;

use std::fmt;
use std::time::Duration;

pub use finding::{CommandRow, Finding};

/// How an audit goes about it. What is out of its range counts as the nearest value within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// How many findings of each check are told one by one; the rest are counted. Default 100, 1 to
    /// 10,000; more of them take memory and rarely tell more.
    pub findings_max: usize,
    /// How long each check may take, where a server makes it. Default 10 min, 1 s to 1 day; longer
    /// ones keep a server from tidying up behind its writers for as long.
    pub check_time_max: Duration,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { findings_max: 100, check_time_max: Duration::from_secs(600) }
    }
}

impl AuditSettings {
    /// The same within their ranges.
    #[must_use]
    pub fn within_ranges(self) -> Self {
        let (second, day) = (Duration::from_secs(1), Duration::from_secs(86_400));
        Self {
            findings_max: self.findings_max.clamp(1, 10_000),
            check_time_max: self.check_time_max.clamp(second, day),
        }
    }
}

/// How many rows an audit has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditCounts {
    /// Commands that took effect. The store in memory knows those with a key or an event only.
    pub commands: u64,
    /// Events.
    pub events: u64,
    /// Streams that have events.
    pub streams: u64,
    /// Keys that answer with what they are remembered for.
    pub keys: u64,
    /// Keys past their retention that stand in the archive.
    pub keys_archived: u64,
    /// Keys whose month of the archive was dropped.
    pub keys_purged: u64,
    /// Reservations of effects, those in doubt among them.
    pub reservations: u64,
    /// Reservations whose owner has run out of time.
    pub in_doubt: u64,
    /// Values that an aggregate holds.
    pub unique_values: u64,
    /// Messages that wait for their delivery.
    pub messages: u64,
}

/// What an audit has found, over one snapshot of a store.
///
/// Printed, it says in one line what was counted, and then each finding in a line of its own.
///
/// ```
/// use sequor_core::audit::AuditReport;
///
/// let report = AuditReport::default();
/// assert!(report.is_clean());
/// assert!(report.to_string().ends_with("; nothing is wrong"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// How much there was.
    pub counts: AuditCounts,
    findings: Vec<Finding>,
    total: u64,
}

impl AuditReport {
    /// A report without findings so far.
    #[must_use]
    pub fn of(counts: AuditCounts) -> Self {
        Self { counts, findings: Vec::new(), total: 0 }
    }

    /// Adds what one check has found: the findings that are told one by one, and how many there are
    /// in all.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>, total: u64) {
        let before = self.findings.len();
        self.findings.extend(findings);
        let told = self.findings.len() - before;
        self.total += total.max(u64::try_from(told).unwrap_or(u64::MAX));
    }

    /// Whether everything is as it must be.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.total == 0
    }

    /// Each finding, as far as they are told one by one.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many findings there are, told or not.
    #[must_use]
    pub fn findings_total(&self) -> u64 {
        self.total
    }
}

impl fmt::Display for AuditCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commands, events, streams, keys, keys_archived, keys_purged, .. } = self;
        write!(
            f,
            "{commands} commands, {events} events in {streams} streams, {keys} keys ({keys_archived} \
             more archived, {keys_purged} purged), {} reservations ({} in doubt), {} unique values, \
             {} messages",
            self.reservations, self.in_doubt, self.unique_values, self.messages
        )
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total;
        if self.is_clean() {
            return write!(f, "{}; nothing is wrong", self.counts);
        }
        write!(f, "{}; {total} findings", self.counts)?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))?;
        let told = u64::try_from(self.findings.len()).unwrap_or(u64::MAX);
        match total.saturating_sub(told) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more like these"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditCounts, AuditReport, AuditSettings, Finding};
    use std::time::Duration;

    fn damaged(what: &str) -> Finding {
        Finding::Unreadable { what: what.to_owned() }
    }

    #[test]
    fn a_report_prints_what_was_counted_and_each_finding() {
        let mut report =
            AuditReport::of(AuditCounts { commands: 2, events: 3, ..AuditCounts::default() });
        report.add([damaged("one"), damaged("two")], 2);
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("2 commands, 3 events"), "{text}");
        assert!(lines[0].ends_with("; 2 findings"), "{text}");
        assert_eq!(lines[1..], ["one", "two"]);
    }

    #[test]
    fn findings_that_are_not_told_are_counted() {
        let mut report = AuditReport::default();
        report.add([damaged("one")], 41);
        report.add([], 0);
        assert_eq!((report.findings().len(), report.findings_total()), (1, 41));
        assert!(report.to_string().ends_with("one\nand 40 more like these"));
    }

    #[test]
    fn settings_keep_within_their_ranges() {
        let wild = AuditSettings { findings_max: 0, check_time_max: Duration::MAX };
        let tame = wild.within_ranges();
        assert_eq!((tame.findings_max, tame.check_time_max.as_secs()), (1, 86_400));
        assert_eq!(AuditSettings::default().within_ranges(), AuditSettings::default());
    }
}
