use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
#[event(skip = "account.pinged")]
#[event(skip("two words"))]
#[event(split(1 = same))]
enum AccountEvent {
    #[event(version = 2, upcast(same))]
    Opened,
    #[event(version = 2, upcast(1))]
    Closed,
    #[event(skip("account.pinged"))]
    Moved,
}

fn same(payload: u8) -> u8 {
    payload
}

fn main() {}
