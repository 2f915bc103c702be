//! For tests of your own domain: given, when, then; a clock that stands still; ids in a row.
//!
//! *For:* saying in three lines what a decider or a whole service must do, and proving that a
//! command with a key takes effect once. A failed check panics and shows what differs.
//! *Never:* a part of a program that runs; nothing here is fast or forgiving.
//! *Start here:* [`given()`] for deciders, [`Scenario`] for services, [`assert_once`] for retries,
//! [`EventsLock`] for events that must stay readable.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/turnstile.rs"));
//! use sequor_testkit::given;
//!
//! # fn main() {
//! // A decider: events in, a command, events or a rejection out. No store, no runtime.
//! let paid = || given::<Turnstile>([Turned::Paid { cents: 100 }]);
//! paid().when(&Ask::pass("north")).then([Turned::Passed]).then_output(&1);
//! paid().when(&Ask::pay("north", 50)).then_rejected(|no| matches!(no, No::PaidBefore));
//! # }
//! ```

mod clock;
mod ids;

mod given;

mod events_lock;

mod log;
mod once;
mod scenario;

mod difference;

pub use clock::ManualClock;
pub use events_lock::EventsLock;
pub use given::{Decided, Given, given};
pub use ids::SequentialIds;
pub use once::assert_once;
pub use scenario::{Answered, Scenario};
