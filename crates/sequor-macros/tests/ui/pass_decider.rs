//! A whole decider, with both derives and nothing imported but them.

#![deny(warnings)]

use sequor_macros::{Command, Event};
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, id = account)]
struct Deposit {
    account: String,
    cents: u64,
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum AccountEvent {
    Deposited { cents: u64 },
}

#[derive(Clone, Default)]
struct Account {
    cents: u64,
}

impl sequor_core::Aggregate for Account {
    const NAME: &str = "account";
    type Event = AccountEvent;
    fn apply(&mut self, event: &AccountEvent) {
        let AccountEvent::Deposited { cents } = event;
        self.cents += cents;
    }
}

impl sequor_core::Decider<Deposit> for Account {
    fn decide(
        &self,
        command: &Deposit,
    ) -> Result<sequor_core::Decision<AccountEvent>, std::convert::Infallible> {
        let cents = command.cents;
        Ok(sequor_core::Decision::event(AccountEvent::Deposited {
            cents,
        }))
    }
}

fn main() {
    let account = Account { cents: 1 };
    let deposit = Deposit {
        account: "a".into(),
        cents: 2,
    };
    let decision = sequor_core::Decider::decide(&account, &deposit);
    assert!(decision.is_ok_and(|decision| decision.events.len() == 1));
}
