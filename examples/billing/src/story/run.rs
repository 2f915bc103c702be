//! How often the story was told on a database: an aggregate of its own, begun anew with each run.

use std::convert::Infallible;

use sequor::{Aggregate, Command, Decider, Decision, Error, Event, Meta, Receipt, Store, TenantId};
use serde::{Deserialize, Serialize};

use crate::database::Bank;

/// Begins a run. It is sent without a key: each time counts.
#[derive(Debug, Command, Serialize, Deserialize)]
#[command(name = "story.begin", output = u64, id = story)]
pub(crate) struct Begin {
    story: String,
}

/// A run has begun.
#[derive(Debug, Event, Serialize, Deserialize)]
#[event(name = "story.begun")]
pub(crate) struct Begun {}

/// Counts the runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story(u64);

impl Aggregate for Story {
    const NAME: &str = "story";
    type Event = Begun;

    fn apply(&mut self, _: &Begun) {
        self.0 += 1;
    }
}

impl Decider<Begin> for Story {
    fn decide(&self, _: &Begin) -> Result<Decision<Begun, u64>, Infallible> {
        Ok(Decision::event(Begun {}).output(self.0 + 1))
    }
}

/// Begins a run; its output is the run's number.
pub(super) async fn begin<S: Store>(
    bank: &Bank<S>,
    tenant: TenantId,
) -> Result<Receipt<u64>, Error<Infallible>> {
    bank.execute(Begin { story: "billing".to_owned() }, Meta::new(tenant)).await
}
