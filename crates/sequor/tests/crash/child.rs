//! The process that will be killed, or whose server will be.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sequor::{Error, Receipt};
use tokio::task::JoinSet;

use crate::bank::{Ask, Bank};
use crate::domain::Home;

/// How many commands are under way at a time.
pub(crate) const CALLERS: u64 = 16;

/// How long a caller goes on asking, and a child on opening.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How soon a caller asks again.
pub(crate) const PACE: Duration = Duration::from_millis(5);

/// What the child is to do.
pub(crate) struct Job {
    /// The path of a file, or the address of a database.
    pub(crate) place: String,
    pub(crate) round: u64,
}

impl Job {
    const PLACE: &str = "SEQUOR_CRASH_PLACE";
    const ROUND: &str = "SEQUOR_CRASH_ROUND";

    /// The job, if this process is a child.
    pub(crate) fn from_environment() -> Option<Self> {
        let place = std::env::var(Self::PLACE).ok()?;
        let round = std::env::var(Self::ROUND).ok()?.parse().ok()?;
        Some(Self { place, round })
    }

    /// Starts a child with this job. It works until its input ends.
    pub(crate) fn spawn(&self) -> std::io::Result<std::process::Child> {
        std::process::Command::new(std::env::current_exe()?)
            .env(Self::PLACE, &self.place)
            .env(Self::ROUND, self.round.to_string())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
    }
}

/// What a caller was told before it got its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    pub(crate) unavailable: u64,
    pub(crate) unknown: u64,
}

impl Doubts {
    /// Takes note of an error that a dying server may cause; there is no other.
    fn note(&mut self, ask: Ask, error: &Error<impl std::fmt::Debug>) {
        if let Error::Unavailable { .. } = error {
            self.unavailable += 1;
        } else if let Error::Unknown { .. } = error {
            self.unknown += 1;
        } else {
            panic!("{ask:?}: {error:?}");
        }
    }
}

/// Executes commands until its input ends, and acknowledges each on stdout: its number, the
/// command's id, its output, and how often it had to ask again, by reason.
pub(crate) async fn run<H: Home>(bank: Bank<H>, round: u64) {
    let (numbers, is_over) = (Arc::new(AtomicU64::new(0)), end_of_input());
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (bank, numbers, is_over) = (bank.clone(), Arc::clone(&numbers), Arc::clone(&is_over));
        callers.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                let (receipt, doubts) = answer(&bank, Ask { round, number }).await;
                let (id, output) = (receipt.command_id, receipt.output.expect("an output"));
                let Doubts { unavailable, unknown } = doubts;
                let line = format!("{number} {id} {output} {unavailable} {unknown}\n");
                std::io::stdout().lock().write_all(line.as_bytes()).expect("the parent listens");
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.expect("a caller ends with its input");
    }
}

/// Becomes true when the parent has heard enough, or is gone.
fn end_of_input() -> Arc<AtomicBool> {
    let is_over = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&is_over);
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).expect("a pipe");
        heard.store(true, Ordering::Relaxed);
    });
    is_over
}

/// Asks, with the same key, until there is an answer.
async fn answer<H: Home>(bank: &Bank<H>, ask: Ask) -> (Receipt<i64>, Doubts) {
    let (mut doubts, mut pace) = (Doubts::default(), tokio::time::interval(PACE));
    let asking = async {
        loop {
            pace.tick().await;
            match bank.execute(ask).await {
                Ok(receipt) => return receipt,
                Err(error) => doubts.note(ask, &error),
            }
        }
    };
    let answered = tokio::time::timeout(PATIENCE, asking).await;
    (answered.unwrap_or_else(|_| panic!("{ask:?} is not answered")), doubts)
}
