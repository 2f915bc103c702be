use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum Borrowed<'a> {
    Named(&'a str),
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
struct Generic<T> {
    value: T,
}

fn main() {}
