//! What the derives write, and what they refuse.

mod command;
mod event;
mod evolution;

/// The error output is that of the compiler in `rust-version`.
#[test]
fn misuse_has_a_readable_compile_error() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass_*.rs");
    cases.compile_fail("tests/ui/event_*.rs");
    cases.compile_fail("tests/ui/command_*.rs");
}
