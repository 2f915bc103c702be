use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum AccountEvent {
    #[event(name = "")]
    Empty,
    #[event(name = "two words")]
    Spaced,
    #[event(name = "über")]
    Foreign,
    #[event(
        name = "a-name-of-129-bytes--------------------------------------------------------------------------------------------------------------"
    )]
    Long,
    Größe,
}

fn main() {}
