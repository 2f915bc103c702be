use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum AccountEvent {
    #[event(version = 0)]
    Opened,
    #[event(version = 4294967296)]
    Moved,
    #[event(version = "2")]
    Closed,
}

fn main() {}
