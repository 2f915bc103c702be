use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, id = account)]
struct Deposit {
    account: Option<u64>,
}

fn main() {}
