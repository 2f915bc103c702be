//! Commands: names, answers, fingerprints, checks, and the aggregate they are about.

use std::any::TypeId;
use std::convert::Infallible;
use std::fmt;

use sequor_core::{Command, Fingerprint, Invalid, Json, Target, Validate};
use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Command, Serialize, Deserialize)]
#[command(crate = sequor_core, prefix = "account.", id = account, validate)]
#[command(output = Option<u64>, rejection = Refused)]
enum AccountCommand {
    #[command(creates)]
    Open { account: String, owner: String },
    #[command(name = "deposit")]
    DepositMoney {
        account: u64,
        cents: u64,
        #[command(volatile)]
        sent_at: u64,
        #[command(volatile)]
        #[serde(rename = "traceId", default)]
        trace: String,
    },
}

#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

impl Validate for AccountCommand {
    fn validate(&self) -> Result<(), Invalid> {
        match self {
            Self::DepositMoney { cents: 0, .. } => Err(Invalid::command("a deposit of nothing")),
            Self::Open { .. } | Self::DepositMoney { .. } => Ok(()),
        }
    }
}

fn open(account: &str) -> AccountCommand {
    AccountCommand::Open { account: account.into(), owner: "Ada".into() }
}

fn deposit(cents: u64, sent_at: u64, trace: &str) -> AccountCommand {
    AccountCommand::DepositMoney { account: 7, cents, sent_at, trace: trace.into() }
}

#[test]
fn who_begins_the_aggregate_says_so() {
    assert!(open("7").creates());
    assert!(!deposit(1, 0, "").creates());
}

fn fingerprint(command: &impl Command) -> Fingerprint {
    let payload = command.encode().expect("has JSON");
    command.fingerprint(&payload).expect("has a fingerprint")
}

fn check_return<C: Command + PartialEq + fmt::Debug>(command: &C) -> String {
    let payload = command.encode().expect("has JSON");
    let back = C::decode(command.name(), payload.as_str()).expect("can be read");
    assert_eq!(&back, command);
    payload.to_string()
}

#[test]
fn a_command_has_its_name_and_returns_from_its_payload() {
    assert_eq!(AccountCommand::NAMES, ["account.open", "deposit"]);
    assert_eq!(open("a").name(), "account.open");
    assert_eq!(deposit(1, 2, "t").name(), "deposit");

    assert_eq!(check_return(&open("a")), r#"{"account":"a","owner":"Ada"}"#);
    let payload = check_return(&deposit(1, 2, "t"));
    assert_eq!(payload, r#"{"account":7,"cents":1,"sent_at":2,"traceId":"t"}"#);
}

#[derive(Debug, PartialEq, Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
enum Shapes {
    Unit,
    Newtype(String),
    Tuple(u8, u8),
    Struct { field: bool },
    Output,
    Rejection,
}

#[derive(Debug, PartialEq, Command, Serialize, Deserialize)]
#[command(crate = sequor_core, name = "wake-up")]
struct Wake;

#[test]
fn every_kind_of_variant_returns_from_its_payload() {
    assert_eq!(check_return(&Shapes::Unit), "null");
    assert_eq!(check_return(&Shapes::Newtype("a".into())), r#""a""#);
    assert_eq!(check_return(&Shapes::Tuple(1, 2)), "[1,2]");
    assert_eq!(check_return(&Shapes::Struct { field: true }), r#"{"field":true}"#);
    assert_eq!(check_return(&Wake), "null");
    assert_eq!(Wake::NAMES, ["wake-up"]);
}

#[test]
fn a_variant_may_be_called_as_an_associated_type() {
    assert_eq!(check_return(&Shapes::Output), "null");
    assert_eq!(check_return(&Shapes::Rejection), "null");
}

#[test]
fn without_attributes_a_command_answers_nothing_and_cannot_be_rejected() {
    fn types<C: Command>() -> (TypeId, TypeId) {
        (TypeId::of::<C::Output>(), TypeId::of::<C::Rejection>())
    }
    let default = (TypeId::of::<()>(), TypeId::of::<Infallible>());
    assert_eq!(types::<Shapes>(), default);

    let given = (TypeId::of::<Option<u64>>(), TypeId::of::<Refused>());
    assert_eq!(types::<AccountCommand>(), given);
}

#[test]
fn an_unknown_name_is_refused_by_name() {
    let refused = AccountCommand::decode("account.close", "null").unwrap_err();
    assert_eq!(refused, Invalid::command("no command is called `account.close` here"));
    assert!(Wake::decode("wake", "null").is_err());
}

#[test]
fn another_shape_is_refused_with_a_reason() {
    let refused = AccountCommand::decode("deposit", r#"{"account":7}"#).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, Invalid::Command { .. }), "{refused:?}");
    let expected = "command `deposit` cannot be read: missing field `cents`";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn fields_with_names_are_not_read_by_their_order() {
    let refused = AccountCommand::decode("deposit", "[7, 5]").unwrap_err();
    assert!(refused.to_string().contains("expected an object"), "{refused}");
}

#[test]
fn volatile_fields_are_left_out_of_the_fingerprint() {
    let command = deposit(5, 1, "one");
    assert_eq!(fingerprint(&command), fingerprint(&deposit(5, 2, "two")));
    assert_ne!(fingerprint(&command), fingerprint(&deposit(6, 1, "one")));

    let rest = Json::parse(r#"{"account":7,"cents":5}"#).unwrap();
    assert_eq!(fingerprint(&command), Fingerprint::of("deposit", &rest));
}

#[test]
fn where_nothing_is_volatile_everything_counts() {
    assert_eq!(fingerprint(&open("a")), fingerprint(&open("a")));
    assert_ne!(fingerprint(&open("a")), fingerprint(&open("b")));
    assert_ne!(fingerprint(&Shapes::Unit), fingerprint(&Shapes::Tuple(0, 0)));
    assert_ne!(fingerprint(&Shapes::Output), fingerprint(&Shapes::Unit));
}

#[derive(Debug, PartialEq, Command, Serialize, Deserialize)]
#[command(crate = sequor_core, id = r#type)]
#[serde(rename_all = "camelCase")]
struct Renamed {
    r#type: String,
    #[command(volatile)]
    #[serde(rename(serialize = "sentAt", deserialize = "sentAt"))]
    sent_at: u64,
}

#[test]
fn a_volatile_field_is_found_under_its_name_in_json() {
    let renamed = |sent_at| Renamed { r#type: "t".into(), sent_at };
    assert_eq!(check_return(&renamed(1)), r#"{"sentAt":1,"type":"t"}"#);
    assert_eq!(fingerprint(&renamed(1)), fingerprint(&renamed(2)));
    assert_eq!(renamed(1).aggregate_id().unwrap().as_str(), "t");
}

#[test]
fn the_id_field_says_which_aggregate_a_command_is_about() {
    assert_eq!(open("a-1").aggregate_id().unwrap().as_str(), "a-1");
    assert_eq!(deposit(1, 1, "").aggregate_id().unwrap().as_str(), "7");
    assert_eq!(open("").aggregate_id(), Err(Invalid::AggregateId));
}

#[test]
fn validate_calls_the_command_s_own_checks_only_where_asked() {
    let refused = Command::validate(&deposit(0, 1, ""));
    assert_eq!(refused, Err(Invalid::command("a deposit of nothing")));
    assert_eq!(Command::validate(&deposit(1, 1, "")), Ok(()));
    assert_eq!(Command::validate(&Shapes::Unit), Ok(()));
}
