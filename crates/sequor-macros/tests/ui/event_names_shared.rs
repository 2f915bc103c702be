use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
enum AccountEvent {
    Opened,
    #[event(name = "account.opened")]
    Reopened,
    Closed,
}

fn main() {}
