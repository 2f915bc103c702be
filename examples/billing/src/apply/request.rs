//! From a line to a command: everything that can be checked before anything is done.

use sequor::{Actor, Command, IdempotencyKey, Invalid, Meta, Store, Target, TenantId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::outcome::Outcome;
use crate::database::Bank;
use crate::domain::{Charge, Open, Refund};

/// What a line asks for, checked.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) place: Place,
    meta: Meta,
    ask: Ask,
}

/// What orders lines: those about one account, or under one key, take effect one after the other.
#[derive(Clone, Debug)]
pub(super) struct Place {
    tenant: TenantId,
    account: String,
    key: IdempotencyKey,
}

#[derive(Debug)]
enum Ask {
    Open(Open),
    Charge(Charge),
    Refund(Refund),
}

/// A line as it is written. What is missing is named with what to write instead, so nothing is
/// required here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'l> {
    tenant: Option<String>,
    key: Option<String>,
    actor: Option<String>,
    command: Option<String>,
    #[serde(borrow)]
    payload: Option<&'l RawValue>,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        if !line.trim_start().starts_with('{') {
            return Err(format!("not a JSON object; {SHAPE}"));
        }
        let written: Written<'_> =
            serde_json::from_str(line).map_err(|error| unreadable(&error))?;
        let tenant = written.tenant.ok_or(r#"no tenant; say for whom: "tenant": "<UUID>""#)?;
        let tenant: TenantId = tenant.parse().map_err(say)?;
        let key = written.key.ok_or(
            r#"no key; name the intent, so that applying the file again charges nobody twice: "key": "…""#,
        )?;
        let key = IdempotencyKey::parse(&key).map_err(say)?;
        let mut meta = Meta::new(tenant).key(key.clone());
        if let Some(actor) = written.actor {
            meta = meta.actor(Actor::new(&actor).map_err(say)?);
        }
        let name = written.command.ok_or(format!("no command; take one of {COMMANDS}"))?;
        let payload = written.payload.ok_or(r#"no payload; add "payload": {…}"#)?;
        let ask = Ask::decode(&name, payload.get())?;
        let account = ask.check().map_err(say)?;
        Ok(Self { place: Place { tenant, account, key }, meta, ask })
    }

    /// Executes the command.
    pub(super) async fn execute<S: Store>(self, bank: &Bank<S>) -> Outcome {
        let meta = self.meta;
        match self.ask {
            Ask::Open(open) => bank.execute(open, meta).await.into(),
            Ask::Charge(charge) => bank.execute(charge, meta).await.into(),
            Ask::Refund(refund) => bank.execute(refund, meta).await.into(),
        }
    }
}

impl Place {
    /// Whether one must wait for the other.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.tenant == other.tenant && (self.account == other.account || self.key == other.key)
    }
}

impl Ask {
    fn decode(name: &str, payload: &str) -> Result<Self, String> {
        // A struct would be read from an array, too, by the order of its members.
        if !payload.starts_with('{') {
            return Err(r#"the payload is no JSON object; write "payload": {…}"#.to_owned());
        }
        let ask = match name {
            "open" => Command::decode(name, payload).map(Self::Open),
            "charge" => Command::decode(name, payload).map(Self::Charge),
            "refund" => Command::decode(name, payload).map(Self::Refund),
            _ => return Err(format!("no command is called `{name}`; take one of {COMMANDS}")),
        };
        ask.map_err(|invalid| without_place(&invalid.to_string()).to_owned())
    }

    /// Runs the command's own checks, and gives the account that it is about.
    fn check(&self) -> Result<String, Invalid> {
        match self {
            Self::Open(open) => check(open),
            Self::Charge(charge) => check(charge),
            Self::Refund(refund) => check(refund),
        }
    }
}

fn check<C: Target>(command: &C) -> Result<String, Invalid> {
    command.validate()?;
    command.aggregate_id().map(|id| id.as_str().to_owned())
}

const COMMANDS: &str = "open, charge, refund";
const SHAPE: &str =
    r#"write {"tenant": "…", "key": "…", "command": "…", "payload": {…}} on one line"#;

fn say(invalid: Invalid) -> String {
    // In this domain, aggregates are accounts.
    if invalid == Invalid::AggregateId {
        return "`account`: empty, over 255 bytes, or with a control character".to_owned();
    }
    invalid.to_string()
}

fn unreadable(error: &serde_json::Error) -> String {
    let (message, column) = (error.to_string(), error.column());
    let message = without_place(&message);
    if error.is_data() {
        return format!("{message} (column {column})");
    }
    format!("no valid JSON at column {column}: {message}; {SHAPE}")
}

/// A message without the line and column that it ends with: the line is always the first.
fn without_place(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}
