//! What is measured: deposits on accounts.

use sequor::{
    Aggregate, BuildError, Command, CommandService, Decider, Decision, Event, Meta, TenantId,
    ports::Store,
};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use uuid::Uuid;

/// Pays into an account.
#[derive(Command, Serialize, Deserialize)]
#[command(name = "deposit", id = account, output = u64)]
pub(super) struct Deposit {
    pub(super) account: u64,
    pub(super) cents: u64,
}

/// Has been paid in.
#[derive(Event, Serialize, Deserialize)]
#[event(name = "deposited")]
pub(super) struct Deposited {
    pub(super) cents: u64,
}

/// Holds what was paid in.
#[derive(Clone, Default)]
pub(super) struct Account(u64);

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = Deposited;
    fn apply(&mut self, event: &Deposited) {
        self.0 += event.cents;
    }
}

impl Decider<Deposit> for Account {
    fn decide(&self, deposit: &Deposit) -> Result<Decision<Deposited, u64>, Infallible> {
        let cents = deposit.cents;
        Ok(Decision::event(Deposited { cents }).output(self.0 + cents))
    }
}

/// Pays in one cent so many times, to make a long stream.
#[derive(Command, Serialize, Deserialize)]
#[command(name = "fill", id = account)]
pub(super) struct Fill {
    pub(super) account: u64,
    pub(super) events: u64,
}

impl Decider<Fill> for Account {
    fn decide(&self, fill: &Fill) -> Result<Decision<Deposited>, Infallible> {
        Ok(Decision::events((0..fill.events).map(|_| Deposited { cents: 1 })))
    }
}

/// A service over a store that keeps so many aggregates in memory.
pub(super) fn service<S: Store>(
    store: S,
    aggregates_cached_max: usize,
) -> Result<CommandService<S>, BuildError> {
    let builder =
        CommandService::builder(store).decider::<Account, Deposit>().decider::<Account, Fill>();
    builder.aggregates_cached_max(aggregates_cached_max).build()
}

/// The only tenant.
pub(super) fn tenant() -> Result<TenantId, sequor::Invalid> {
    TenantId::new(Uuid::from_u128(0x018f_2f6e_0000_7000_8000_0000_0000_0001))
}

/// How keys are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// No key.
    None,
    /// Keys that sort by time, as UUIDv7 does.
    TimeOrdered,
    /// Keys in no order, as UUIDv4.
    Random,
}

impl Keys {
    /// What is said about command number `number`.
    pub(super) fn meta(self, number: u64) -> Result<Meta, sequor::Invalid> {
        let meta = Meta::new(tenant()?);
        Ok(match self.text(number) {
            Some(key) => meta.key(key.parse()?),
            None => meta,
        })
    }

    /// The key of command number `number`.
    pub(super) fn text(self, number: u64) -> Option<String> {
        match self {
            Self::None => None,
            Self::TimeOrdered => Some(format!("{number:016x}-time-ordered-key-00")),
            Self::Random => Some(format!("{:016x}-random-in-no-order0", scatter(number))),
        }
    }
}

/// Maps numbers to numbers without order, one to one (the finaliser of splitmix64).
pub(super) fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
