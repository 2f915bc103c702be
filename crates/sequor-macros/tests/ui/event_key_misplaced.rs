use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, name = "account", version = 2)]
enum AccountEvent {
    #[event(prefix = "account.")]
    Opened,
    Closed {
        #[event(name = "why")]
        reason: String,
    },
}

fn main() {}
