use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, split("account.moved", 1 = into_nothing_of_ours))]
enum AccountEvent {
    #[event(version = 2, upcast(1 = unreadable))]
    Opened,
}

struct Opened1;

fn unreadable(_: Opened1) -> u8 {
    0
}

fn into_nothing_of_ours(cents: u8) -> [u8; 1] {
    [cents]
}

fn main() {}
