//! Faults in what comes back.

use std::sync::Mutex;

use sequor_core::audit::{AuditReport, Finding};
use sequor_core::{Commit, Json, Position, StoredEvent, Timestamp};

use crate::broken::Fault;

/// Sets its counter back too far when a transaction is rolled back.
#[derive(Debug, Default)]
pub(crate) struct GivesPositionsAgain {
    drawn: Mutex<u64>,
    rolled_back_at: Mutex<Vec<u64>>,
}

impl Fault for GivesPositionsAgain {
    fn wrote(&self, _: &Commit, events: &[StoredEvent]) {
        let last = events.iter().map(|event| event.position.get()).max();
        *self.drawn.lock().unwrap() = last.unwrap_or_default();
    }

    fn ended(&self, committed: bool) {
        if !committed {
            self.rolled_back_at.lock().unwrap().push(*self.drawn.lock().unwrap());
        }
    }

    fn shows_position(&self, position: Position) -> Position {
        let rolled_back_at = self.rolled_back_at.lock().unwrap();
        let rollbacks = rolled_back_at.iter().filter(|at| **at < position.get()).count();
        Position::new(position.get().saturating_sub(9 * rollbacks as u64).max(1))
    }
}

#[derive(Debug, Default)]
pub(crate) struct SkipsEventOfPage;

impl Fault for SkipsEventOfPage {
    fn reads_log(&self, mut found: Vec<StoredEvent>) -> Vec<StoredEvent> {
        if found.len() > 2 {
            found.remove(1);
        }
        found
    }
}

#[derive(Debug, Default)]
pub(crate) struct ReadsFromTheBeginning;

impl Fault for ReadsFromTheBeginning {
    fn reads_from_the_beginning(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
pub(crate) struct CutsMicroseconds;

impl Fault for CutsMicroseconds {
    fn taken(&self, mut commit: Commit) -> Commit {
        let millis = commit.meta.time.as_micros().div_euclid(1_000);
        commit.meta.time = Timestamp::from_micros(millis * 1_000).unwrap();
        commit
    }
}

#[derive(Debug, Default)]
pub(crate) struct ReadsNumbersAsDoubles;

impl Fault for ReadsNumbersAsDoubles {
    fn taken(&self, mut commit: Commit) -> Commit {
        for event in &mut commit.events {
            if let Ok(numbers) = event.payload.read::<Vec<f64>>() {
                event.payload = Json::of(&numbers).unwrap();
            }
        }
        commit
    }
}

#[derive(Debug, Default)]
pub(crate) struct StripsNulEscapes;

impl Fault for StripsNulEscapes {
    fn taken(&self, mut commit: Commit) -> Commit {
        for event in &mut commit.events {
            event.payload = Json::from_stored(&event.payload.as_str().replace(r"\u0000", ""));
        }
        commit
    }
}

#[derive(Debug, Default)]
pub(crate) struct MiscountsEvents;

impl Fault for MiscountsEvents {
    fn audits(&self, mut report: AuditReport) -> AuditReport {
        report.counts.events += 1;
        report
    }
}

#[derive(Debug, Default)]
pub(crate) struct FindsWhatIsNotThere;

impl Fault for FindsWhatIsNotThere {
    fn audits(&self, mut report: AuditReport) -> AuditReport {
        report.add([Finding::Unreadable { what: "nothing".to_owned() }], 1);
        report
    }
}
