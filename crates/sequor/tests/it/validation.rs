//! A command's own checks, here by the `garde` crate.

use sequor::{Aggregate, Command, CommandService, Decider, Decision, Error, Event, Invalid};
use sequor::{Mode, Options, Validate};
use serde::{Deserialize, Serialize};

use crate::bank::{key, keyed, meta, tenant};
use crate::home::Home;
use crate::watched::{Door, Watched};

on_every_store!(a_command_that_breaks_its_own_rules_is_invalid, a_valid_command_passes);

#[derive(Clone, Command, garde::Validate, Serialize, Deserialize)]
#[command(name = "customer.register", id = customer, validate)]
struct Register {
    #[garde(skip)]
    customer: u32,
    #[garde(length(min = 1, max = 20))]
    name: String,
    #[garde(range(min = 18))]
    age: u8,
}

impl Validate for Register {
    fn validate(&self) -> Result<(), Invalid> {
        garde::Validate::validate(self).map_err(Invalid::command)
    }
}

#[derive(Event, Serialize, Deserialize)]
#[event(name = "customer.registered")]
struct Registered {
    name: String,
}

#[derive(Clone, Default)]
struct Customer;

impl Aggregate for Customer {
    const NAME: &str = "customer";
    type Event = Registered;
    fn apply(&mut self, _: &Registered) {}
}

impl Decider<Register> for Customer {
    fn decide(
        &self,
        register: &Register,
    ) -> Result<Decision<Registered>, std::convert::Infallible> {
        Ok(Decision::event(Registered { name: register.name.clone() }))
    }
}

fn register(name: &str, age: u8) -> Register {
    Register { customer: 1, name: name.into(), age }
}

async fn a_command_that_breaks_its_own_rules_is_invalid<H: Home>(store: Watched<H>) {
    let service =
        CommandService::builder(store.clone()).decider::<Customer, Register>().build().unwrap();
    let invalid = service.execute(register("", 7), keyed("k")).await.unwrap_err();
    let Error::Invalid(Invalid::Command { reason }) = &invalid else { panic!("{invalid:?}") };
    assert!(reason.contains("name") && reason.contains("age"), "{reason}");
    assert_eq!(store.watch.calls(Door::Commit), 0);
    assert!(service.outcome(tenant(1), &key("k")).await.unwrap().is_none());
}

async fn a_valid_command_passes<H: Home>(store: Watched<H>) {
    let service =
        CommandService::builder(store.clone()).decider::<Customer, Register>().build().unwrap();
    assert!(Validate::validate(&register("Ann", 42)).is_ok());
    assert!(service.execute(register("Ann", 42), meta()).await.unwrap().is_executed());
    service.execute(register("Ann", 42), keyed("k")).await.unwrap();
    let output = Options::default().mode(Mode::Output);
    let again = service.execute_with(register("Ann", 42), keyed("k"), output).await.unwrap();
    assert_eq!(again.output, Some(()));
}
