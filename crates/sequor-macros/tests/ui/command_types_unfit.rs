use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, output = Balance, rejection = Refused)]
struct Deposit {
    cents: u64,
}

struct Balance(u64);

struct Refused;

fn main() {}
