use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
enum AccountCommand {
    #[command(name = "open")]
    Begin,
    Open,
    #[command(name = "open")]
    Start,
}

fn main() {}
