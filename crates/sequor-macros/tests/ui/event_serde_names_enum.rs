use sequor_macros::Event;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
#[serde(tag = "type", content = "data", rename_all = "camelCase")]
enum Tagged {
    Opened,
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
#[serde(untagged)]
enum Untagged {
    Opened,
}

#[derive(Clone, Event, Serialize, Deserialize)]
#[event(crate = sequor_core)]
#[serde(from = "Text", into = "Text")]
enum Converted {
    Opened,
}

#[derive(Serialize, Deserialize)]
struct Text(String);

impl From<Text> for Converted {
    fn from(_: Text) -> Self {
        Self::Opened
    }
}

impl From<Converted> for Text {
    fn from(_: Converted) -> Self {
        Self("opened".into())
    }
}

fn main() {}
