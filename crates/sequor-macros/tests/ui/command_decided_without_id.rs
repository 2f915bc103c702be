use std::convert::Infallible;

use sequor_core::{Aggregate, Decider, Decision};
use sequor_macros::{Command, Event};
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
struct Deposit {
    cents: u64,
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
struct Deposited;

#[derive(Clone, Default)]
struct Account;

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = Deposited;
    fn apply(&mut self, _: &Deposited) {}
}

impl Decider<Deposit> for Account {
    fn decide(&self, _: &Deposit) -> Result<Decision<Deposited>, Infallible> {
        Ok(Decision::event(Deposited))
    }
}

fn main() {}
