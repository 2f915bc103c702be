//! Names of the prelude mean other things here, a variant is deprecated, and the types come out of
//! a macro: what the derives write does not mind.

#![no_implicit_prelude]
#![deny(warnings)]

use ::sequor_macros::{Command, Event};
use ::serde::{Deserialize, Serialize};

pub struct Result;
pub struct Option;
pub struct String;

macro_rules! declare {
    ($event:ident { $old:ident, $new:ident }, $command:ident { $field:ident }) => {
        #[derive(Event, Serialize, Deserialize)]
        #[event(crate = ::sequor_core)]
        pub enum $event {
            #[deprecated]
            $old,
            $new {
                payload: u8,
            },
        }

        #[derive(Command, Serialize, Deserialize)]
        #[command(crate = ::sequor_core, id = $field)]
        pub struct $command {
            $field: u64,
            #[command(volatile)]
            name: u64,
        }

        impl $command {
            /// Not the trait's.
            pub fn name(&self) -> u64 {
                self.name
            }
        }
    };
}

declare!(Event1 { Old, New }, Command1 { account });

fn main() {
    let _: (Result, Option, String) = (Result, Option, String);
    use ::sequor_core::{Command, Event, Target};

    let event = Event1::New { payload: 1 };
    ::std::assert_eq!(event.name().name, "new");
    let command = Command1 {
        account: 1,
        name: 2,
    };
    ::std::assert_eq!(command.name(), 2);
    ::std::assert_eq!(Command::name(&command), "command1");
    ::std::assert_eq!(command.aggregate_id().unwrap().as_str(), "1");
    let payload = command.encode().unwrap();
    command.fingerprint(&payload).unwrap();
}
