use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "my account ")]
enum AccountEvent {
    Opened,
    Closed,
}

fn main() {}
