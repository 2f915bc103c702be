//! The sample domain: accounts of a bank. It derives through `::sequor`, as users do.

use sequor::ports::{ReadLog, Store};
use sequor::{Aggregate, Builder, Command, CommandService, Decider, Decision, Event};
use sequor::{IdempotencyKey, Meta, Position, StoredEvent, TenantId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::home::Home;
use crate::watched::Watched;

/// A service over a watched store.
pub(crate) type Bank<H> = CommandService<Watched<H>>;

#[derive(Clone, Debug, Command, Serialize, Deserialize)]
#[command(prefix = "account.", id = account, output = Balance, rejection = Refused)]
pub(crate) enum Ask {
    #[command(creates)]
    Open {
        account: String,
    },
    Deposit {
        account: String,
        cents: i64,
        #[serde(default)]
        tags: Vec<String>,
        #[command(volatile)]
        #[serde(default)]
        sent_at: u64,
    },
    Withdraw {
        account: String,
        cents: i64,
    },
    /// Nothing happens.
    Look {
        account: String,
    },
    /// Takes an e-mail address, unique in the tenant.
    Mail {
        account: String,
        address: String,
    },
    /// Takes a number, unique in the tenant.
    Number {
        account: String,
        number: String,
    },
    /// Lets go of the address.
    Unmail {
        account: String,
    },
    /// Lets go of everything.
    Close {
        account: String,
    },
    /// Notes a text several times.
    Note {
        account: String,
        text: String,
        times: usize,
    },
    /// Rates what cannot be rated: the event, or the output, is NaN.
    Rate {
        account: String,
        rate: Rate,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Rate {
    NanEvent,
    NanOutput,
}

#[derive(Debug, Event, Serialize, Deserialize)]
#[event(prefix = "account.")]
pub(crate) enum Happened {
    Opened,
    Posted { cents: i64 },
    Mailed { address: String },
    Noted { text: String },
    Rated { rate: f64 },
    Closed,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{self:?}")]
pub(crate) enum Refused {
    NotOpen,
    OpenAlready,
    Overdrawn,
}

/// What a command answers: what the account held right after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Balance {
    pub(crate) cents: i64,
    pub(crate) large: u64,
    pub(crate) rate: f64,
}

#[derive(Clone, Default)]
pub(crate) struct Account {
    pub(crate) open: bool,
    pub(crate) cents: i64,
    pub(crate) address: Option<String>,
}

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = Happened;

    fn apply(&mut self, happened: &Happened) {
        match happened {
            Happened::Opened => self.open = true,
            Happened::Posted { cents } => self.cents = self.cents.saturating_add(*cents),
            Happened::Mailed { address } => self.address = Some(address.clone()),
            Happened::Noted { .. } | Happened::Rated { .. } => {}
            Happened::Closed => self.open = false,
        }
    }
}

impl Decider<Ask> for Account {
    fn decide(&self, ask: &Ask) -> Result<Decision<Happened, Balance>, Refused> {
        match ask {
            Ask::Open { .. } if self.open => Err(Refused::OpenAlready),
            Ask::Open { .. } => Ok(self.opened()),
            _ if !self.open => Err(Refused::NotOpen),
            Ask::Withdraw { cents, .. } if *cents > self.cents => Err(Refused::Overdrawn),
            Ask::Withdraw { cents, .. } => Ok(self.posted(-cents)),
            Ask::Deposit { cents, .. } => Ok(self.posted(*cents)),
            Ask::Note { text, times, .. } => Ok(self.noted(text, *times)),
            Ask::Rate { rate, .. } => Ok(self.rated(*rate)),
            Ask::Mail { .. }
            | Ask::Number { .. }
            | Ask::Unmail { .. }
            | Ask::Close { .. }
            | Ask::Look { .. } => Ok(self.named(ask)),
        }
    }
}

impl Account {
    fn balance(&self, change: i64) -> Balance {
        Balance { cents: self.cents.saturating_add(change), large: u64::MAX, rate: 0.1 + 0.2 }
    }

    fn opened(&self) -> Decision<Happened, Balance> {
        Decision::event(Happened::Opened).output(self.balance(0))
    }

    fn posted(&self, cents: i64) -> Decision<Happened, Balance> {
        Decision::event(Happened::Posted { cents }).output(self.balance(cents))
    }

    fn noted(&self, text: &str, times: usize) -> Decision<Happened, Balance> {
        let noted = (0..times).map(|_| Happened::Noted { text: text.to_owned() });
        Decision::events(noted).output(self.balance(0))
    }

    fn rated(&self, rate: Rate) -> Decision<Happened, Balance> {
        let balance = self.balance(0);
        match rate {
            Rate::NanEvent => Decision::event(Happened::Rated { rate: f64::NAN }).output(balance),
            Rate::NanOutput => Decision::event(Happened::Rated { rate: 1.0 })
                .output(Balance { rate: f64::NAN, ..balance }),
        }
    }

    /// What an account is called, and unique in.
    fn named(&self, ask: &Ask) -> Decision<Happened, Balance> {
        let decision = match ask {
            Ask::Mail { address, .. } => {
                let mailed = Happened::Mailed { address: address.clone() };
                Decision::event(mailed).hold(ADDRESS, address)
            }
            Ask::Number { number, .. } => Decision::nothing().hold(NUMBER, number),
            Ask::Unmail { .. } => Decision::nothing().release(ADDRESS),
            Ask::Close { .. } => Decision::event(Happened::Closed).release_all(),
            Ask::Open { .. }
            | Ask::Deposit { .. }
            | Ask::Withdraw { .. }
            | Ask::Look { .. }
            | Ask::Note { .. }
            | Ask::Rate { .. } => Decision::nothing(),
        };
        decision.output(self.balance(0))
    }
}

/// Scopes of unique values.
pub(crate) const ADDRESS: &str = "account.address";
pub(crate) const NUMBER: &str = "account.number";

/// A service in which deciders decide everything.
pub(crate) fn bank<H: Home>(store: &Watched<H>) -> Builder<Watched<H>> {
    CommandService::builder(store.clone()).decider::<Account, Ask>()
}

/// Opens accounts of the first tenant.
pub(crate) async fn open<H: Home>(bank: &Bank<H>, accounts: &[&str]) {
    for account in accounts {
        let open = Ask::Open { account: (*account).to_owned() };
        bank.execute(open, meta()).await.unwrap();
    }
}

pub(crate) fn deposit(account: &str, cents: i64) -> Ask {
    Ask::Deposit { account: account.to_owned(), cents, tags: Vec::new(), sent_at: 0 }
}

pub(crate) fn withdraw(account: &str, cents: i64) -> Ask {
    Ask::Withdraw { account: account.to_owned(), cents }
}

pub(crate) fn look(account: &str) -> Ask {
    Ask::Look { account: account.to_owned() }
}

pub(crate) fn mail(account: &str, address: &str) -> Ask {
    Ask::Mail { account: account.to_owned(), address: address.to_owned() }
}

/// A tenant; equal numbers are equal tenants.
pub(crate) fn tenant(number: u8) -> TenantId {
    let id = 0x018f_2f6e_0000_7000_8000_0000_0000_0000_u128 + u128::from(number);
    TenantId::new(Uuid::from_u128(id)).unwrap()
}

/// A command for the first tenant.
pub(crate) fn meta() -> Meta {
    Meta::new(tenant(1))
}

/// A command for the first tenant, with a key.
pub(crate) fn keyed(name: &str) -> Meta {
    meta().key(key(name))
}

pub(crate) fn key(name: &str) -> IdempotencyKey {
    name.parse().unwrap()
}

/// What an account holds, from a look at it that leaves nothing but a command.
pub(crate) async fn cents<H: Home>(bank: &Bank<H>, account: &str) -> i64 {
    bank.execute(look(account), meta()).await.unwrap().output.unwrap().cents
}

/// All events of a tenant's partition, which no other tenant of these tests shares.
pub(crate) async fn log_of<H: Home>(store: &Watched<H>, tenant: TenantId) -> Vec<StoredEvent> {
    let (mut log, mut after) = (Vec::new(), Position::START);
    loop {
        let page = store.read_after(store.partition(tenant), after, 10_000).await.unwrap();
        let Some(last) = page.last() else { return log };
        after = last.position;
        log.extend(page);
    }
}
