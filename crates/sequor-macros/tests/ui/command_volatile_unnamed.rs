use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
#[serde(rename_all = "camelCase")]
struct Deposit {
    cents: u64,
    #[command(volatile)]
    sent_at: u64,
}

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core)]
#[serde(rename_all_fields = "camelCase")]
enum AccountCommand {
    Open {
        #[command(volatile)]
        sent_at: u64,
    },
    Close {
        #[command(volatile)]
        #[serde(flatten)]
        trace: Trace,
    },
}

#[derive(Serialize, Deserialize)]
struct Trace {
    id: u64,
}

fn main() {}
