//! A bank account: a deposit that is sent twice under one key counts once, and nobody overdraws.
#![expect(clippy::print_stdout, reason = "an example speaks on stdout")]

use sequor::{Aggregate, Command, Decider, Decision, Event};
use sequor::{CommandService, Meta, memory::MemoryStore};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Command, Serialize, Deserialize)]
#[command(id = account, rejection = Refused)]
enum Ask {
    Open { account: Uuid },
    Deposit { account: Uuid, cents: u32 },
    Withdraw { account: Uuid, cents: u32 },
}

#[derive(Event, Serialize, Deserialize)]
struct Posted(i64);

#[derive(Debug, thiserror::Error)]
#[error("{self:?}")]
enum Refused {
    NotOpen,
    Overdrawn,
}

#[derive(Clone, Default)]
struct Account(Option<i64>);

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = Posted;
    fn apply(&mut self, posted: &Posted) {
        self.0 = Some(self.0.unwrap_or(0) + posted.0);
    }
}

impl Decider<Ask> for Account {
    fn decide(&self, ask: &Ask) -> Result<Decision<Posted>, Refused> {
        Ok(Decision::event(Posted(match (ask, self.0) {
            (Ask::Open { .. }, _) => 0,
            (_, None) => return Err(Refused::NotOpen),
            (Ask::Deposit { cents, .. }, _) => i64::from(*cents),
            (Ask::Withdraw { cents, .. }, Some(b)) if b >= (*cents).into() => -i64::from(*cents),
            (Ask::Withdraw { .. }, _) => return Err(Refused::Overdrawn),
        })))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bank = CommandService::builder(MemoryStore::new()).decider::<Account, Ask>().build()?;
    let (account, tenant) = (Uuid::from_u128(42), "018f2f6e-0000-7000-8000-000000000001".parse()?);
    bank.execute(Ask::Open { account }, Meta::new(tenant)).await?;
    for _ in 0..2 {
        let meta = Meta::new(tenant).key("payday-2026-11".parse()?);
        let receipt = bank.execute(Ask::Deposit { account, cents: 500 }, meta).await?;
        println!("deposit 500: {:?} as {}", receipt.disposition, receipt.command_id);
    }
    match bank.execute(Ask::Withdraw { account, cents: 501 }, Meta::new(tenant)).await {
        Ok(receipt) => println!("withdraw 501: {:?}", receipt.disposition),
        Err(error) => println!("withdraw 501: {error}"),
    }
    Ok(())
}
