use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, outptu = u64)]
enum AccountCommand {
    #[command(version = 2)]
    Open {
        #[command(skip)]
        owner: String,
    },
}

fn main() {}
