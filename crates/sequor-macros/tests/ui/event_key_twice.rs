use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum AccountEvent {
    #[event(name = "opened", name = "begun")]
    Opened,
    #[event(version = 1)]
    #[event(version = 2)]
    Closed,
}

fn main() {}
