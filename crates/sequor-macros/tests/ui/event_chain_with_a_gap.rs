use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
enum AccountEvent {
    #[event(version = 3, upcast(2 = same))]
    Opened,
    #[event(version = 2, upcast(1 = same, 1 = same))]
    Closed,
    #[event(version = 2, upcast(1 = same, 2 = same))]
    Moved,
    #[event(upcast(0 = same))]
    Shared,
}

fn same(payload: u8) -> u8 {
    payload
}

fn main() {}
