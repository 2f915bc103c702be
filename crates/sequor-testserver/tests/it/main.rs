//! What stands between the tests and a real server, proved on a real server.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod bouncer;
mod cluster;
mod outlive;
mod proxy;
