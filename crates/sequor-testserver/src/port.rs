//! A free port, for a server that can only be told a number.

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;

use crate::error::ServerError;

/// The first of the ports to choose from, and their number. They lie below those that systems give
/// to outgoing connections, so that a stopped server finds its own port free again.
const PORTS: (u16, u16) = (20_000, 12_000);

/// How often a start is tried with another port when somebody else was faster.
const TRIES_MAX: u32 = 8;

/// Starts a server on a free port, and tries another one if that was taken in the meantime.
pub(crate) fn on_a_free_port<S>(
    mut start: impl FnMut(u16) -> Result<S, ServerError>,
) -> Result<S, ServerError> {
    for _ in 1..TRIES_MAX {
        match start(free_port()) {
            Err(ServerError::Ended { said, .. }) if is_taken(&said) => {}
            other => return other,
        }
    }
    start(free_port())
}

/// PostgreSQL and PgBouncer both pass on what the operating system says.
fn is_taken(said: &str) -> bool {
    said.contains("Address already in use") || said.contains("could not bind")
}

/// A port on which nobody listens right now.
fn free_port() -> u16 {
    let (first, number) = PORTS;
    let somewhere = RandomState::new().hash_one("port") % u64::from(number);
    let start = u16::try_from(somewhere).unwrap_or_default();
    let ports = (0..number).map(|step| first + (start + step) % number);
    let mut free = ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    // The server says it in its log if there is none.
    free.next().unwrap_or(first)
}
