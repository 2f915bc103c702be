//! What sequor wants to reach beside the best of the others, and whether it does.

use std::time::Duration;

use crate::load::{Load, Work};
use crate::matrix::Ground;
use crate::report::{Report, Row, load, table};
use crate::stage::{Disk, Network};

const OWN_DISK: Ground = Ground::Postgres(Disk::Own, Network::Direct);
const SLOW_FLUSH: Ground = Ground::Postgres(Disk::Slow, Network::Direct);
const SLOW_TRIP: Ground = Ground::Postgres(Disk::Own, Network::Slow);

const AIMS: [Aim; 11] = [
    Aim::at_least(4.0, OWN_DISK, (Work::Deposit, 32)),
    Aim::at_least(2.5, SLOW_FLUSH, (Work::Deposit, 32)),
    Aim::at_least(5.0, SLOW_TRIP, (Work::Deposit, 32)),
    Aim::at_least(6.0, OWN_DISK, (Work::Deposit, 256)),
    Aim::at_least(2.0, OWN_DISK, (Work::Deposit, 8)),
    Aim::at_least(1.3, SLOW_FLUSH, (Work::Deposit, 8)),
    Aim { is_p99: true, times: 0.25, ground: OWN_DISK, work: Work::Deposit, callers: 32 },
    Aim { is_p99: true, times: 0.25, ground: SLOW_FLUSH, work: Work::Deposit, callers: 32 },
    Aim::at_least(1.4, OWN_DISK, (Work::Deposit, 1)),
    Aim::at_least(0.9, OWN_DISK, (Work::Cold, 1)),
    Aim::at_least(20.0, SLOW_FLUSH, (Work::Hot, 32)),
];

/// Commands a second, at least so many times those of the best of the others; or a p99, at most so
/// many times the shortest of the others.
struct Aim {
    is_p99: bool,
    times: f64,
    ground: Ground,
    work: Work,
    callers: usize,
}

impl Aim {
    const fn at_least(times: f64, ground: Ground, (work, callers): (Work, usize)) -> Self {
        Self { is_p99: false, times, ground, work, callers }
    }

    fn told(&self, rows: &[Row]) -> Vec<String> {
        let load_wanted = Load { work: self.work, callers: self.callers };
        let row = rows.iter().find(|row| row.ground == self.ground && row.load == load_wanted);
        let seen = row.and_then(|row| self.seen(row));
        let (sign, what) = if self.is_p99 { ("≤", "p99") } else { ("≥", "commands a second") };
        let mut told = vec![
            format!("{}: {}", self.ground.title(), load(load_wanted)),
            format!("{what} {sign} {} ×", self.times),
        ];
        told.extend(match seen {
            Some((best, ratio)) => [format!("{ratio:.2} × {best}"), self.verdict(ratio)],
            None => ["nobody to compare with".to_owned(), String::new()],
        });
        told
    }

    /// The best of the others, and how sequor compares.
    fn seen(&self, row: &Row) -> Option<(&'static str, f64)> {
        let (_, ours) = row.figures.first()?;
        let (name, ratio) = if self.is_p99 {
            let measured = row.others().filter(|(_, figure)| figure.p99 > Duration::ZERO);
            let (name, best) = measured.min_by_key(|(_, figure)| figure.p99)?;
            (*name, ours.p99.as_secs_f64() / best.p99.as_secs_f64())
        } else {
            let (name, best) = row.best()?;
            (name, ours.per_second / best.per_second)
        };
        (ratio.is_finite() && ratio > 0.0).then_some((name, ratio))
    }

    fn verdict(&self, ratio: f64) -> String {
        let over = if self.is_p99 { self.times / ratio } else { ratio / self.times };
        if over >= 1.0 {
            format!("reached by {:.0} %", (over - 1.0) * 100.0)
        } else {
            format!("missed by {:.0} %", (1.0 - over) * 100.0)
        }
    }
}

/// Adds a table: each aim, what was seen, and by how much it was reached or missed.
pub(crate) fn tell(report: &mut Report, rows: &[Row]) {
    report.say("### What sequor wants to reach");
    report.say(
        "Beside the best of the others in the same row; percents are of the aim. Where more than one \
         disk would do and none is named, the aim is for this machine's own.",
    );
    let body = AIMS.iter().map(|aim| aim.told(rows)).collect();
    report.say(&table(vec!["what", "aim", "seen", "verdict"], body).to_string());
}
