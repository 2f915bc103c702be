use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum Nothing {}

fn main() {}
