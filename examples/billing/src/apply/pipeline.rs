//! Several lines at once, so that they share a flush; in order where order matters.

use std::collections::VecDeque;

use anyhow::bail;
use sequor::Store;
use tokio::task::JoinHandle;

use super::lines::Line;
use super::outcome::{Outcome, Summary};
use super::progress::Progress;
use super::request::{Place, Request};
use crate::database::Bank;

/// Lines under way at most. More share a flush, fewer wait for it; each costs a task.
const LINES_MAX: usize = 64;

/// The lines under way, first line first, and what became of those before.
pub(super) struct Pipeline<S: Store> {
    bank: Bank<S>,
    under_way: VecDeque<UnderWay>,
    summary: Summary,
    progress: Progress,
    /// The line that met trouble which the next line would meet, too, and the trouble.
    stopped: Option<(u64, String)>,
}

struct UnderWay {
    number: u64,
    bytes_read: u64,
    work: Work,
}

enum Work {
    Bad(String),
    Running(Place, JoinHandle<Outcome>),
}

impl<S: Store> Pipeline<S> {
    pub(super) fn new(bank: Bank<S>, progress: Progress) -> Self {
        let (under_way, summary) = (VecDeque::new(), Summary::default());
        Self { bank, under_way, summary, progress, stopped: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether further lines would be in vain.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Takes a line in, once there is room, and nothing is under way that must come before it.
    pub(super) async fn take(&mut self, line: Line) {
        let Line { number, text, bytes_read } = line;
        let request = match text {
            Ok(text) if is_skipped(&text) => return,
            Ok(text) => Request::parse(&text),
            Err(why) => Err(why.to_owned()),
        };
        while self.under_way.len() >= LINES_MAX || self.meets(request.as_ref().ok()) {
            self.settle_first().await;
        }
        if self.is_stopped() {
            return;
        }
        let work = match request {
            Err(why) => Work::Bad(why),
            Ok(request) => {
                let (bank, place) = (self.bank.clone(), request.place.clone());
                Work::Running(place, tokio::spawn(async move { request.execute(&bank).await }))
            }
        };
        self.under_way.push_back(UnderWay { number, bytes_read, work });
    }

    fn meets(&self, request: Option<&Request>) -> bool {
        let Some(Request { place, .. }) = request else {
            return false;
        };
        self.under_way.iter().any(|UnderWay { work, .. }| match work {
            Work::Running(other, _) => place.meets(other),
            Work::Bad(_) => false,
        })
    }

    /// Waits for the first line under way, and reports it; so reports come in the order of lines.
    ///
    /// # Cancellation
    /// The line stays under way.
    pub(super) async fn settle_first(&mut self) {
        let Some(UnderWay { number, bytes_read, work }) = self.under_way.front_mut() else {
            return;
        };
        let (number, bytes_read) = (*number, *bytes_read);
        let outcome = match work {
            Work::Bad(why) => Outcome::Bad(std::mem::take(why)),
            Work::Running(_, task) => {
                task.await.unwrap_or_else(|error| Outcome::Stopped(error.to_string()))
            }
        };
        self.under_way.pop_front();
        self.count(number, outcome);
        self.progress.advance(bytes_read);
    }

    fn count(&mut self, number: u64, outcome: Outcome) {
        let Summary { executed, replayed, rejected, failed, bad } = &mut self.summary;
        let (counter, said) = match outcome {
            Outcome::Executed => (executed, None),
            Outcome::Replayed => (replayed, None),
            Outcome::Rejected(said) => (rejected, Some(said)),
            Outcome::Failed(said) => (failed, Some(said)),
            Outcome::Bad(said) => (bad, Some(said)),
            Outcome::Stopped(said) => {
                self.stopped.get_or_insert((number, said));
                return;
            }
        };
        *counter += 1;
        if let Some(said) = said {
            self.progress.say(number, &said);
        }
    }

    /// Waits for every line under way.
    ///
    /// # Errors
    /// When the database got into trouble on the way.
    pub(super) async fn finish(mut self) -> anyhow::Result<Summary> {
        while !self.is_empty() {
            self.settle_first().await;
        }
        self.progress.clear();
        let summary = self.summary;
        if let Some((number, said)) = self.stopped {
            bail!(
                "stopped at line {number}: {said} ({summary}); \
                 apply it again: what has taken effect is replayed"
            );
        }
        Ok(summary)
    }
}

fn is_skipped(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with('#')
}
