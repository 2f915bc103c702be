use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
enum AccountCommand {
    #[command(creates)]
    Open { account: String },
    Close { account: String },
}

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, creates)]
struct Open {
    account: String,
}

fn main() {}
