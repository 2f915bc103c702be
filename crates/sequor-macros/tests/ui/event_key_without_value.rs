use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum AccountEvent {
    #[event(name)]
    Opened,
    #[event(name = 5)]
    Moved,
    #[event]
    Closed,
}

fn main() {}
