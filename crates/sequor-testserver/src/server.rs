//! What tests call: where the server is that they may use.

use std::env;

/// The variable in which `cargo xtask test` hands the server to the tests.
pub const VARIABLE: &str = "SEQUOR_TEST_POSTGRES";

/// The variable in which a contributor names a server of their own.
pub const VARIABLE_OF_USERS: &str = "DATABASE_URL";

/// The URL of a server, from the environment: `SEQUOR_TEST_POSTGRES`, else `DATABASE_URL`.
///
/// Nothing if neither is set, or both are empty. Every test makes databases of its own there.
#[must_use]
pub fn url_if_set() -> Option<String> {
    let set = |name| env::var(name).ok().filter(|url| !url.is_empty());
    set(VARIABLE).or_else(|| set(VARIABLE_OF_USERS))
}

/// The URL of a server where a test may create databases and roles.
///
/// # Panics
/// If the environment names none; the message says what to run instead.
#[must_use]
pub fn url() -> String {
    url_if_set().unwrap_or_else(|| panic!("{}", MISSING))
}

const MISSING: &str = "this test needs PostgreSQL: run it with `cargo xtask test`, or set \
     DATABASE_URL to a server where this user may create databases and roles";
