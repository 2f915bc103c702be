use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
enum AccountCommand {
    Open(String, #[command(volatile)] u64),
}

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
struct Deposit(#[command(volatile)] u64);

fn main() {}
