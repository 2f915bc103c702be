//! The domain: accounts with a credit limit, which are charged and refunded.
//!
//! Pure: no clock, no chance, no database. Commands say what is asked, events what has happened,
//! [`Account`] is what the events add up to, and [`Refused`] is how it says no.

use garde::Validate;
use sequor::{Aggregate, Command, Decider, Decision, Event, Invalid};
use serde::{Deserialize, Serialize};

use crate::money::{Amount, Cents};

/// The highest credit limit: ten million.
const LIMIT_CENTS_MAX: i64 = 1_000_000_000;

/// Opens an account. Checked by the `garde` crate.
#[derive(Clone, Debug, Command, Serialize, Deserialize, Validate)]
#[command(name = "open", rejection = Refused, id = account, creates, validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub(crate) struct Open {
    /// Which account; the bus checks ids itself.
    pub(crate) account: String,
    /// Whose it is, for people to read.
    #[garde(length(chars, min = 1, max = 100), custom(without_control_characters))]
    pub(crate) owner: String,
    /// How far the account may be charged.
    #[garde(range(min = 1, max = LIMIT_CENTS_MAX))]
    pub(crate) limit_cents: i64,
}

impl sequor::Validate for Open {
    fn validate(&self) -> Result<(), Invalid> {
        Validate::validate(self).map_err(|report| {
            let lines: Vec<_> = report.iter().map(|(at, why)| format!("`{at}`: {why}")).collect();
            Invalid::command(lines.join("; "))
        })
    }
}

fn without_control_characters(text: &str, (): &()) -> garde::Result {
    if text.chars().any(char::is_control) {
        return Err(garde::Error::new("holds a control character"));
    }
    Ok(())
}

/// Charges an account.
#[derive(Clone, Debug, Command, Serialize, Deserialize)]
#[command(name = "charge", output = Charged, rejection = Refused, id = account)]
#[serde(deny_unknown_fields)]
pub(crate) struct Charge {
    /// Which account.
    pub(crate) account: String,
    /// How much; one that is no amount cannot be read in the first place.
    pub(crate) cents: Amount,
}

/// What a charge answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charged {
    /// Numbers the charges of an account: 1, 2, 3 …
    pub(crate) charge: u64,
    /// What the account owes after it.
    pub(crate) balance_cents: Cents,
}

/// Pays a part of what an account owes back.
#[derive(Clone, Debug, Command, Serialize, Deserialize)]
#[command(name = "refund", output = Refunded, rejection = Refused, id = account)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refund {
    /// Which account.
    pub(crate) account: String,
    /// How much.
    pub(crate) cents: Amount,
}

/// What a refund answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refunded {
    /// What the account owes after it.
    pub(crate) balance_cents: Cents,
}

/// What can happen to an account.
#[derive(Clone, Debug, PartialEq, Eq, Event, Serialize, Deserialize)]
pub(crate) enum AccountEvent {
    /// It exists from now on.
    #[event(name = "account.opened")]
    Opened {
        /// Whose it is.
        owner: String,
        /// How far it may be charged.
        limit_cents: Cents,
    },
    /// It owes more.
    #[event(name = "account.charged")]
    Charged {
        /// Which of its charges.
        charge: u64,
        /// How much more.
        cents: Amount,
    },
    /// It owes less.
    #[event(name = "account.refunded")]
    Refunded {
        /// How much less.
        cents: Amount,
    },
}

/// An account, as far as its decisions need it. Nobody has opened the default one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    limit: Option<Cents>,
    balance: Cents,
    charges: u64,
}

/// How an account says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// It exists already.
    #[error("the account is open already")]
    AlreadyOpen,
    /// It does not exist.
    #[error("nobody has opened this account; open it first")]
    NotOpen,
    /// It would owe more than it may.
    #[error("{asked} is over the limit: {available} of {limit} are left")]
    OverLimit {
        /// What was to be charged.
        asked: Amount,
        /// What can still be charged.
        available: Cents,
        /// What may be charged in all.
        limit: Cents,
    },
    /// More would go back than is owed.
    #[error("{asked} is more than the account owes, which is {balance}")]
    OverBalance {
        /// What was to be refunded.
        asked: Amount,
        /// What is owed.
        balance: Cents,
    },
}

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = AccountEvent;

    fn apply(&mut self, event: &AccountEvent) {
        match event {
            AccountEvent::Opened { limit_cents, .. } => self.limit = Some(*limit_cents),
            AccountEvent::Charged { charge, cents } => {
                self.balance = self.balance.plus(*cents);
                self.charges = *charge;
            }
            AccountEvent::Refunded { cents } => self.balance = self.balance.minus(*cents),
        }
    }
}

impl Decider<Open> for Account {
    fn decide(&self, open: &Open) -> Result<Decision<AccountEvent>, Refused> {
        if self.limit.is_some() {
            return Err(Refused::AlreadyOpen);
        }
        let (owner, limit_cents) = (open.owner.clone(), Cents(open.limit_cents));
        Ok(Decision::event(AccountEvent::Opened { owner, limit_cents }))
    }
}

impl Decider<Charge> for Account {
    fn decide(&self, command: &Charge) -> Result<Decision<AccountEvent, Charged>, Refused> {
        let limit = self.limit.ok_or(Refused::NotOpen)?;
        let asked = command.cents;
        let available = limit.minus(self.balance);
        if Cents::from(asked) > available {
            return Err(Refused::OverLimit { asked, available, limit });
        }
        let (charge, balance_cents) = (self.charges + 1, self.balance.plus(asked));
        let event = AccountEvent::Charged { charge, cents: asked };
        Ok(Decision::event(event).output(Charged { charge, balance_cents }))
    }
}

impl Decider<Refund> for Account {
    fn decide(&self, command: &Refund) -> Result<Decision<AccountEvent, Refunded>, Refused> {
        self.limit.ok_or(Refused::NotOpen)?;
        let (asked, balance) = (command.cents, self.balance);
        if Cents::from(asked) > balance {
            return Err(Refused::OverBalance { asked, balance });
        }
        let balance_cents = balance.minus(asked);
        let event = AccountEvent::Refunded { cents: asked };
        Ok(Decision::event(event).output(Refunded { balance_cents }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_account(limit_cents: i64, charged_cents: i64) -> Account {
        let mut account = Account::default();
        account.apply(&AccountEvent::Opened { owner: "o".into(), limit_cents: Cents(limit_cents) });
        if let Some(cents) = Amount::new(charged_cents) {
            account.apply(&AccountEvent::Charged { charge: 1, cents });
        }
        account
    }

    fn charge(cents: i64) -> Charge {
        Charge { account: "a".into(), cents: Amount::new(cents).unwrap() }
    }

    fn refund(cents: i64) -> Refund {
        Refund { account: "a".into(), cents: Amount::new(cents).unwrap() }
    }

    #[test]
    fn a_charge_answers_its_number_and_the_balance() {
        let decision = open_account(100, 40).decide(&charge(60)).unwrap();
        assert_eq!(decision.output, Charged { charge: 2, balance_cents: Cents(100) });
        let cents = Amount::new(60).unwrap();
        assert_eq!(decision.events, [AccountEvent::Charged { charge: 2, cents }]);
    }

    #[test]
    fn a_charge_over_the_limit_is_refused_however_large_it_is() {
        for asked in [61, i64::MAX] {
            let (asked, command) = (Amount::new(asked).unwrap(), charge(asked));
            let refused = open_account(100, 40).decide(&command).unwrap_err();
            let (available, limit) = (Cents(60), Cents(100));
            assert_eq!(refused, Refused::OverLimit { asked, available, limit });
        }
    }

    #[test]
    fn a_refund_over_the_balance_is_refused() {
        assert!(open_account(100, 40).decide(&refund(40)).is_ok());
        let refused = open_account(100, 40).decide(&refund(41)).unwrap_err();
        assert!(matches!(refused, Refused::OverBalance { balance: Cents(40), .. }), "{refused}");
    }

    #[test]
    fn only_an_open_account_is_charged_or_refunded_and_none_is_opened_twice() {
        assert_eq!(Account::default().decide(&charge(1)), Err(Refused::NotOpen));
        assert_eq!(Account::default().decide(&refund(1)), Err(Refused::NotOpen));
        let open = Open { account: "a".into(), owner: "o".into(), limit_cents: 1 };
        assert_eq!(open_account(100, 0).decide(&open), Err(Refused::AlreadyOpen));
    }

    #[test]
    fn garde_says_what_is_wrong_with_an_opening() {
        let open = Open { account: "a".into(), owner: String::new(), limit_cents: 0 };
        let invalid = Command::validate(&open).unwrap_err().to_string();
        assert!(invalid.contains("`owner`") && invalid.contains("`limit_cents`"), "{invalid}");
    }
}
