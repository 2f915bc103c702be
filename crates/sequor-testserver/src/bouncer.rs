//! PgBouncer in front of a server, as many run theirs.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::account::Account;
use crate::address::Address;
use crate::error::ServerError;
use crate::install::install_pgbouncer;
use crate::patience::wait_for;
use crate::port::on_a_free_port;
use crate::supervised::{Plan, Supervised};

/// How long it may take until it accepts connections.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How many connections to the server all clients of a database share: few, so that they do.
const POOL_SIZE: u32 = 4;

/// A PgBouncer of our own, in transaction pooling mode: each transaction may get another one of four
/// connections to the server, so nothing of a session may be relied on from one to the next.
///
/// Every client is let in as one role, whatever it says and without a password. Dropping it, or the
/// end of this process, stops it.
#[derive(Debug)]
pub struct PgBouncer {
    // Dropped from top to bottom: the process goes before its folder.
    _process: Supervised,
    _folder: TempDir,
    server: Address,
    port: u16,
}

impl PgBouncer {
    /// Starts it in front of a server: `127.0.0.1:5432`, or a URL with host and port. Clients are let
    /// in as the user of the URL.
    ///
    /// # Errors
    /// [`ServerError`]: PgBouncer is not there and cannot be installed, or it does not start.
    pub fn start(server: &str) -> Result<Self, ServerError> {
        Self::in_front_of(Address::parse(server))
    }

    /// The same for another role, which the server must let in without a password.
    ///
    /// # Errors
    /// As [`PgBouncer::start`].
    pub fn start_as(role: &str, server: &str) -> Result<Self, ServerError> {
        Self::in_front_of(Address { user: role.to_owned(), ..Address::parse(server) })
    }

    fn in_front_of(server: Address) -> Result<Self, ServerError> {
        let program = install_pgbouncer()?;
        let (account, folder) = Account::with_folder()?;
        let file = folder.path().join("pgbouncer.ini");
        let (port, process) = on_a_free_port(|port| {
            fs::write(&file, configuration(&server, port))
                .map_err(ServerError::unusable("write the configuration of pgbouncer"))?;
            account.give(&file)?;
            let mut command = Command::new(&program);
            command.arg(&file);
            let folder = folder.path();
            let plan = Plan { account, folder, signal: "KILL", command: &command };
            Ok((port, started(&plan, port)?))
        })?;
        Ok(Self { _process: process, _folder: folder, server, port })
    }

    /// The URL of a database behind it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.server.url_at(self.port, database)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn started(plan: &Plan<'_>, port: u16) -> Result<Supervised, ServerError> {
    let mut process = Supervised::start(plan)?;
    let ready = wait_for(START_LIMIT, || {
        if process.ended().is_some() {
            return Some(false);
        }
        TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(true)
    });
    match ready {
        Some(true) => Ok(process),
        Some(false) => Err(process.ended_early()),
        None => Err(process.too_slow("accept connections", START_LIMIT)),
    }
}

fn configuration(server: &Address, port: u16) -> String {
    let Address { user, host, port: server_port } = server;
    let quoted = |value: &str| format!("'{}'", value.replace('\'', "''"));
    let user = match user.split_once(':') {
        None => quoted(user),
        // An empty password would be a syntax error.
        Some((user, password)) => format!("{} password={}", quoted(user), quoted(password)),
    };
    format!(
        "[databases]\n\
         * = host={host} port={server_port} user={user}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         default_pool_size = {POOL_SIZE}\n\
         max_client_conn = 500\n\
         ignore_startup_parameters = extra_float_digits\n"
    )
}
