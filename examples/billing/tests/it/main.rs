//! The program, run as a person would run it, each time in a folder of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so with a panic")]

mod program;

mod apply;
mod command_line;
mod database;
mod story;
