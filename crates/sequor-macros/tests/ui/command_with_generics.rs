use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
struct Deposit<T> {
    cents: T,
}

fn main() {}
