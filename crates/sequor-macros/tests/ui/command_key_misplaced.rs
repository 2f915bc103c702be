use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, volatile)]
enum AccountCommand {
    #[command(output = u64)]
    Open {
        #[command(id)]
        account: String,
    },
    #[command(validate)]
    Close { account: String },
}

fn main() {}
