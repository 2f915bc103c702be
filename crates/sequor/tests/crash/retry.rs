//! Everything once more, with the same keys.

use std::sync::Arc;

use sequor::Receipt;
use tokio::task::JoinSet;

use crate::bank::{Ask, Bank};
use crate::child::{CALLERS, Doubts};
use crate::domain::Home;
use crate::working::Seen;

/// What was found out in all rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Acknowledged, and still there.
    pub(crate) kept: usize,
    /// Not acknowledged, and there.
    pub(crate) in_doubt: usize,
    /// Not acknowledged, and not there: the retry executed them.
    pub(crate) ran_now: usize,
    /// What callers were told while the server was gone.
    pub(crate) doubts: Doubts,
}

impl Counts {
    /// Retries every command that the child of a round may have started.
    pub(crate) async fn retry<H: Home>(&mut self, bank: &Bank<H>, (round, seen): (u64, Seen)) {
        self.doubts.unavailable += seen.doubts.unavailable;
        self.doubts.unknown += seen.doubts.unknown;
        let started = seen.acknowledged.keys().next_back().map_or(0, |last| last + 1) + CALLERS;
        let seen = Arc::new(seen);
        let mut callers = JoinSet::new();
        for first in 0..CALLERS {
            let (bank, seen) = (bank.clone(), Arc::clone(&seen));
            callers.spawn(async move {
                let mut counts = Self::default();
                for number in (first..started).step_by(usize::try_from(CALLERS).expect("small")) {
                    counts.retry_one(&bank, Ask { round, number }, &seen).await;
                }
                counts
            });
        }
        while let Some(counts) = callers.join_next().await {
            self.add(&counts.expect("every retry is answered"));
        }
    }

    async fn retry_one<H: Home>(&mut self, bank: &Bank<H>, ask: Ask, seen: &Seen) {
        let receipt = ask_again(bank, ask).await;
        let Some((command_id, output)) = seen.acknowledged.get(&ask.number) else {
            self.in_doubt += usize::from(receipt.is_replayed());
            self.ran_now += usize::from(receipt.is_executed());
            let again = ask_again(bank, ask).await;
            assert!(again.is_replayed(), "{ask:?} ran twice");
            assert_eq!(again.command_id, receipt.command_id, "{ask:?} was replaced");
            return;
        };
        assert!(receipt.is_replayed(), "acknowledged {ask:?} ran again");
        assert_eq!(receipt.command_id, *command_id, "{ask:?} was replaced");
        assert_eq!(receipt.output, Some(*output), "{ask:?} changed its output");
        self.kept += 1;
    }

    fn add(&mut self, other: &Self) {
        self.kept += other.kept;
        self.in_doubt += other.in_doubt;
        self.ran_now += other.ran_now;
    }
}

async fn ask_again<H: Home>(bank: &Bank<H>, ask: Ask) -> Receipt<i64> {
    bank.execute(ask).await.unwrap_or_else(|error| panic!("{ask:?} is not answered: {error:?}"))
}
