use sequor_macros::Event;
use serde::Serialize;

#[derive(Event)]
#[event(crate = sequor_core)]
enum AccountEvent {
    Opened,
}

#[derive(Event, Serialize)]
#[event(crate = sequor_core)]
struct Counted;

fn main() {}
