use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
#[serde(tag = "type")]
enum AccountCommand {
    #[serde(rename = "begin")]
    Open,
}

fn main() {}
