use sequor_macros::Command;
use serde::{Deserialize, Serialize};

#[derive(Command, Serialize, Deserialize)]
#[command(crate = sequor_core, validate = check)]
struct Open {
    #[command(volatile(true))]
    sent_at: u64,
}

fn main() {}
