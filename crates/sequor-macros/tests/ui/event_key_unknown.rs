use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefixx = "account.")]
enum AccountEvent {
    #[event(rename = "opened")]
    Opened {
        #[event(skip)]
        owner: String,
    },
    #[event(named)]
    Closed,
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, since = 2)]
struct Counted;

fn main() {}
