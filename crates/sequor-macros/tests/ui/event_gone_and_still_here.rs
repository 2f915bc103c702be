use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.", skip("account.closed", "account.created"))]
enum AccountEvent {
    #[event(was = "account.created")]
    Opened,
    #[event(was = "account.opened")]
    Closed,
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, skip("account.closed"), was = "account.closed")]
struct Counted;

fn main() {}
