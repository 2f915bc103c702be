use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
enum AccountEvent {
    #[serde(rename = "begun")]
    Opened,
    #[serde(rename_all = "camelCase")]
    Moved { to_where: String },
    #[serde(skip)]
    Closed,
}

fn main() {}
