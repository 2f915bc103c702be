use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, id = account)]
enum AccountCommand {
    Open { account: String },
    Rename { acount: String },
    Move(String),
    Close,
}

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, id = account)]
struct Deposit {
    cents: u64,
}

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, id = account)]
struct Wake(String);

fn main() {}
