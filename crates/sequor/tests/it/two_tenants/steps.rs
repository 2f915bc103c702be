//! What the tenants ask for: by chance, and from so little that everything comes up again.

use std::fmt::{Debug, Display};

use sequor::{Actor, Batch, Meta, Mode, Options, TenantId, Version};

use super::mix::{Mix, Rows, Turn};
use crate::bank::{Ask, Bank, deposit, key, look, mail, withdraw};

pub(super) const KEYS: [&str; 10] =
    ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "ann@example.org", "bob@example.org"];
pub(super) const ACCOUNTS: [&str; 3] = ["a", "b", "c"];
/// Unique values, and keys of what handlers issue.
const VALUES: [&str; 2] = ["ann@example.org", "bob@example.org"];
const ACTORS: [Option<&str>; 3] = [None, Some("ann"), Some("bob")];
const MODES: [Option<Mode>; 4] = [None, Some(Mode::NoOp), Some(Mode::Strict), Some(Mode::Output)];

const TURNS: [Turn; 7] =
    [Turn::Post, Turn::Post, Turn::Hold, Turn::End, Turn::Issue, Turn::Issue, Turn::Refuse];

/// What a tenant's texts and amounts are recognised by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) text: &'static str,
    /// All amounts are multiples of it.
    pub(super) unit: i64,
}

/// Chance from a seed.
#[derive(Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(u64::try_from(of.len()).unwrap())).unwrap()]
    }
}

/// One thing that a tenant does.
#[derive(Clone, Debug)]
pub(super) enum Step {
    One(Call),
    All(Vec<Call>),
}

/// A command with all that is said about it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    asked: Asked,
    key: Option<&'static str>,
    actor: Option<&'static str>,
    options: Options,
}

#[derive(Clone, Debug)]
enum Asked {
    Decider(Ask),
    Handler(Mix),
}

impl Step {
    /// Opens an account.
    pub(super) fn open(account: &str) -> Self {
        let asked = Asked::Decider(Ask::Open { account: account.to_owned() });
        Self::One(Call { asked, key: None, actor: None, options: Options::default() })
    }

    /// Something new, or a retry of something past: as it was, by somebody else, or in another mode.
    pub(super) fn next(chance: &mut Chance, mark: Mark, past: &mut Vec<Self>) -> Self {
        let retried = (chance.below(3) == 0).then(|| chance.below(1_000));
        if let Some(number) = retried
            && !past.is_empty()
        {
            let place = usize::try_from(number).unwrap() % past.len();
            return past[place].clone().retried(chance);
        }
        let step = match chance.below(6) {
            0 => Self::All((0..=chance.below(3)).map(|_| Call::next(chance, mark)).collect()),
            _ => Self::One(Call::next(chance, mark)),
        };
        past.push(step.clone());
        step
    }

    fn retried(mut self, chance: &mut Chance) -> Self {
        let calls = match &mut self {
            Self::One(call) => std::slice::from_mut(call),
            Self::All(calls) => calls,
        };
        for call in calls {
            match chance.below(3) {
                0 => call.actor = chance.one(&ACTORS),
                1 => call.options.mode = chance.one(&MODES),
                _ => {}
            }
        }
        self
    }
}

impl Call {
    fn next(chance: &mut Chance, mark: Mark) -> Self {
        let asked = match chance.below(3) {
            0 => Asked::Handler(handled(chance, mark)),
            _ => Asked::Decider(decided(chance, mark)),
        };
        let key = (chance.below(5) < 2).then(|| chance.one(&KEYS));
        let (actor, mode) = (chance.one(&ACTORS), chance.one(&MODES));
        let if_version = (chance.below(12) == 0).then(|| Version::new(chance.below(8)));
        Self { asked, key, actor, options: Options { mode, if_version } }
    }

    fn meta(&self, tenant: TenantId) -> Meta {
        let meta = Meta::new(tenant);
        let meta = self.key.iter().fold(meta, |meta, name| meta.key(key(name)));
        self.actor.iter().fold(meta, |meta, name| meta.actor(Actor::new(name).unwrap()))
    }
}

fn decided(chance: &mut Chance, mark: Mark) -> Ask {
    let account = chance.one(&ACCOUNTS);
    let cents = amount(chance, mark);
    let (value, times) = (chance.one(&VALUES), usize::try_from(chance.below(3)).unwrap());
    let to = || account.to_owned();
    match chance.below(10) {
        0 => Ask::Open { account: to() },
        1 | 2 => deposit(account, cents),
        3 => withdraw(account, cents),
        4 => look(account),
        5 | 6 => mail(account, value),
        7 => Ask::Number { account: to(), number: value.to_owned() },
        8 => Ask::Note { account: to(), text: mark.text.to_owned(), times },
        _ if times > 0 => Ask::Unmail { account: to() },
        _ => Ask::Close { account: to() },
    }
}

fn handled(chance: &mut Chance, mark: Mark) -> Mix {
    Mix {
        from: chance.one(&ACCOUNTS).to_owned(),
        to: chance.one(&ACCOUNTS).to_owned(),
        value: chance.one(&VALUES).to_owned(),
        cents: amount(chance, mark),
        text: mark.text.to_owned(),
        turn: chance.one(&TURNS),
    }
}

fn amount(chance: &mut Chance, mark: Mark) -> i64 {
    i64::try_from(chance.below(5) + 1).unwrap() * mark.unit
}

/// Takes a step, and tells the whole answer.
pub(super) async fn take<H: Rows>(bank: &Bank<H>, tenant: TenantId, step: &Step) -> String {
    match step {
        Step::One(call) => take_one(bank, tenant, call).await,
        Step::All(calls) => {
            let batch = calls.iter().fold(Batch::new(), |batch, call| {
                let (meta, options) = (call.meta(tenant), call.options);
                match call.asked.clone() {
                    Asked::Decider(ask) => batch.then_with(ask, meta, options),
                    Asked::Handler(mix) => batch.then_with(mix, meta, options),
                }
            });
            told(bank.execute_all(batch).await)
        }
    }
}

async fn take_one<H: Rows>(bank: &Bank<H>, tenant: TenantId, call: &Call) -> String {
    let (meta, options) = (call.meta(tenant), call.options);
    match call.asked.clone() {
        Asked::Decider(ask) if options == Options::default() => told(bank.execute(ask, meta).await),
        Asked::Decider(ask) => told(bank.execute_with(ask, meta, options).await),
        Asked::Handler(mix) => told(bank.execute_with(mix, meta, options).await),
    }
}

fn told<T: Debug, E: Debug + Display>(answer: Result<T, E>) -> String {
    match answer {
        Ok(receipt) => format!("{receipt:?}"),
        Err(error) => format!("{error:?}: {error}"),
    }
}
