//! A private PostgreSQL cluster in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::account::Account;
use crate::error::{ServerError, last_lines, last_lines_of};
use crate::find::Binaries;
use crate::patience::wait_for;
use crate::port::on_a_free_port;
use crate::supervised::{Plan, Supervised};

/// How long a server may take until it accepts connections, recovery after a crash included.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Fast for tests: nothing survives a power failure, which no test can have.
const DEFAULTS: [(&str, &str); 7] = [
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "on"),
    ("max_connections", "200"),
    ("shared_buffers", "128MB"),
    ("max_prepared_transactions", "10"),
    ("log_line_prefix", "%m [%p] %d "),
];

/// A running PostgreSQL server of our own, on a port of its own, with its data in a temporary folder.
///
/// The user `postgres` may do everything there, without a password, from this machine. Dropping the
/// cluster stops the server and removes its data; so does the end of this process, even by
/// `kill -9`. So it may as well live in a static.
///
/// Starting takes about a second, so share one where you can: see [`server::url`](crate::server::url).
#[derive(Debug)]
pub struct Cluster {
    // Dropped from top to bottom: the server goes before its folder.
    server: Option<Supervised>,
    account: Account,
    folder: TempDir,
    binaries: Binaries,
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    port: u16,
}

/// Settings of a [`Cluster`] that is not started yet.
#[derive(Debug, Default, Clone)]
pub struct ClusterBuilder {
    binaries: Option<Binaries>,
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
}

impl ClusterBuilder {
    /// Uses these programs instead of those that [`Binaries::find`] finds.
    #[must_use]
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// Sets a parameter of the server, as in `postgresql.conf`; the last word on a name counts.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a variable in the environment of the server's processes.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes as a production server does (`fsync`, `full_page_writes`): for benchmarks, and for
    /// tests that say what survives a crash. Costs one flush of the disk for each commit.
    #[must_use]
    pub fn durable(self) -> Self {
        self.setting("fsync", "on").setting("full_page_writes", "on")
    }

    /// Starts it, and returns when it accepts connections.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start(self) -> Result<Cluster, ServerError> {
        let Self { binaries, settings, environment } = self;
        let binaries = binaries.map_or_else(Binaries::find, Ok)?;
        let (account, folder) = Account::with_folder()?;
        let mut cluster =
            Cluster { server: None, account, folder, binaries, settings, environment, port: 0 };
        cluster.make_data()?;
        on_a_free_port(|port| {
            cluster.port = port;
            cluster.start_again()
        })?;
        Ok(cluster)
    }
}

impl Cluster {
    /// Starts a cluster with the settings for fast tests.
    ///
    /// They are: `fsync` and `full_page_writes` off, `synchronous_commit` on, 200 connections,
    /// 128 MB of shared buffers.
    ///
    /// # Errors
    /// [`ServerError`]: the programs are not there, or did not do what they should.
    pub fn start() -> Result<Self, ServerError> {
        Self::builder().start()
    }

    /// A cluster with settings of your own.
    #[must_use]
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// The URL of one of its databases. A new cluster has `postgres`, which is always there.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address())
    }

    /// Its host and port, as `127.0.0.1:20432`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1; the same for all its life.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The programs that it runs; `pg_dump` and the like are beside them.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The folder with its data, its socket and its log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The last lines of its log, at most 20.
    #[must_use]
    pub fn log(&self) -> String {
        last_lines_of(&self.folder().join("log"))
    }

    /// Stops it as a crash would: nothing is written any more, all connections end.
    ///
    /// The next start recovers. Does nothing if it does not run.
    ///
    /// # Errors
    /// [`ServerError::TooSlow`] if it still runs after a minute.
    pub fn stop_immediate(&mut self) -> Result<(), ServerError> {
        self.stop_by("QUIT")
    }

    /// Stops it in an orderly way: open transactions are rolled back, all connections end.
    ///
    /// Does nothing if it does not run.
    ///
    /// # Errors
    /// [`ServerError::TooSlow`] if it still runs after a minute.
    pub fn stop_fast(&mut self) -> Result<(), ServerError> {
        self.stop_by("INT")
    }

    /// Starts a stopped cluster, with the same data and port. Does nothing if it runs.
    ///
    /// # Errors
    /// [`ServerError`]: most of all [`Ended`](ServerError::Ended), with the log's last lines, if
    /// somebody else has taken the port.
    pub fn start_again(&mut self) -> Result<(), ServerError> {
        if self.server.as_mut().is_some_and(|server| server.ended().is_none()) {
            return Ok(());
        }
        // Left behind by a server that was killed; it says that a server is ready.
        let before = self.lock_file();
        let mut server = self.launch()?;
        let ready = wait_for(START_LIMIT, || match self.lock_file() {
            _ if server.ended().is_some() => Some(false),
            now if now != before && is_ready(&now) => Some(true),
            _ => None,
        });
        match ready {
            Some(true) => self.server = Some(server),
            Some(false) => return Err(server.ended_early()),
            None => return Err(server.too_slow("accept connections", START_LIMIT)),
        }
        Ok(())
    }

    /// Stops it in an orderly way and starts it again.
    ///
    /// # Errors
    /// As [`stop_fast`](Self::stop_fast) and [`start_again`](Self::start_again).
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.stop_fast()?;
        self.start_again()
    }

    fn stop_by(&mut self, signal: &str) -> Result<(), ServerError> {
        let Some(server) = &mut self.server else {
            return Ok(());
        };
        server.stop_by(signal)?;
        self.server = None;
        Ok(())
    }

    /// Makes the data folder. Databases sort by code point, as sequor's own keys do.
    fn make_data(&self) -> Result<(), ServerError> {
        let refused = match self.initdb("C.UTF-8")? {
            None => return Ok(()),
            // This system has no such locale; C is everywhere.
            Some(_) => self.initdb("C")?,
        };
        refused.map_or(Ok(()), |said| Err(ServerError::Ended { program: "initdb".into(), said }))
    }

    /// Runs `initdb`, and returns what it said if it failed.
    fn initdb(&self, locale: &str) -> Result<Option<String>, ServerError> {
        let mut command = self.account.applied(Command::new(self.binaries.program("initdb")));
        command.args(["--no-sync", "-E", "UTF8", "-U", "postgres", "-A", "trust"]);
        command.arg(format!("--locale={locale}")).arg("-D").arg(self.data());
        command.current_dir(self.folder());
        let output = command.output().map_err(ServerError::unusable("run initdb"))?;
        let said = [output.stdout, output.stderr].concat();
        let said = last_lines(&String::from_utf8_lossy(&said));
        Ok(if output.status.success() { None } else { Some(said) })
    }

    fn launch(&self) -> Result<Supervised, ServerError> {
        let mut command = Command::new(self.binaries.program("postgres"));
        command.arg("-D").arg(self.data());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let (port, folder) = (self.port.to_string(), self.folder().display().to_string());
        let ours = [
            ("port", port.as_str()),
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", folder.as_str()),
        ];
        let theirs = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in DEFAULTS.into_iter().chain(theirs).chain(ours) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let (account, folder) = (self.account, self.folder());
        Supervised::start(&Plan { account, folder, signal: "QUIT", command: &command })
    }

    fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// The server's own note of its process, start, port and state; empty if it is not there.
    fn lock_file(&self) -> String {
        fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default()
    }
}

/// The eighth line of the lock file tells the server's state.
fn is_ready(lock_file: &str) -> bool {
    lock_file.lines().nth(7).is_some_and(|state| state.trim() == "ready")
}
