//! The PostgreSQL server of a test run: one of our own, unless the environment names another.

use std::fmt;

use anyhow::Result;
use sequor_testserver::{Binaries, Cluster, server};

use crate::step::Step;
use crate::test::packages;

/// The packages with tests that need a server.
const USERS: [&str; 4] = ["sequor", "sequor-postgres", "sequor-testserver", "billing"];

/// A server where tests may create databases. If it is ours, it ends when this is dropped, and when
/// this process ends in whatever way: Ctrl-C and signals need no handling.
#[derive(Debug)]
pub(crate) enum Postgres {
    /// Somebody else's, at this URL.
    Named(String),
    /// Ours.
    Private(Cluster),
}

impl Postgres {
    /// The server for the tests that these arguments of `cargo test` select, if they need one.
    pub(crate) fn for_tests(rest: &[String]) -> Result<Option<Self>> {
        if !need_a_server(rest) {
            return Ok(None);
        }
        if let Some(url) = server::url_if_set() {
            return Ok(Some(Self::Named(url)));
        }
        let binaries = Binaries::find().or_else(|missing| {
            println!("{missing}\ntrying to install it …");
            Binaries::find_or_install()
        })?;
        Ok(Some(Self::Private(Cluster::builder().binaries(binaries).start()?)))
    }

    /// The step with the variables in which tests look for the server.
    pub(crate) fn hand_to(&self, step: Step) -> Step {
        let url = self.url();
        step.with_passing_env(server::VARIABLE, &url)
            .with_passing_env(server::VARIABLE_OF_USERS, &url)
    }

    fn url(&self) -> String {
        match self {
            Self::Named(url) => url.clone(),
            Self::Private(cluster) => cluster.url("postgres"),
        }
    }
}

/// The one line that is shown before the tests; it has no URL, for that may hold a password.
impl fmt::Display for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(_) => f.write_str("PostgreSQL: the server that the environment names"),
            Self::Private(cluster) => {
                let (major, port) = (cluster.binaries().major(), cluster.port());
                write!(f, "PostgreSQL {major} on port {port}, for this run only")
            }
        }
    }
}

fn need_a_server(rest: &[String]) -> bool {
    let packages = packages(rest);
    packages.is_empty() || packages.iter().any(|package| USERS.contains(package))
}

#[cfg(test)]
mod tests {
    use super::need_a_server;

    fn need(rest: &str) -> bool {
        need_a_server(&rest.split_whitespace().map(Into::into).collect::<Vec<_>>())
    }

    #[test]
    fn a_run_that_no_user_of_postgres_is_in_needs_no_server() {
        assert!(need("") && need("stale_version") && need("-p sequor-core -p sequor"));
        assert!(!need("-p sequor-core") && !need("-psequor-bus name -- -p sequor"));
    }
}
