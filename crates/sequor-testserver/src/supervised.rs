//! A server under supervision: it ends when we say so, and when we are no more.
//!
//! Between us and the server stands a shell that reads from a pipe whose other end only we hold.
//! A line in it names the signal to send. Its end means that we are gone, even by `kill -9`: the
//! operating system closes the pipe. Then the shell stops the server and removes its folder.
//! The shell has a process group of its own, so that Ctrl-C in a terminal reaches us and not it.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::account::Account;
use crate::error::{ServerError, last_lines_of};
use crate::patience::wait_for;

/// `sh -c SCRIPT name folder signal program arguments…`
const SCRIPT: &str = include_str!("supervise.sh");

/// How long a server may take to end. PostgreSQL kills its own stragglers after 5 s.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What to run, and where.
#[derive(Debug)]
pub(crate) struct Plan<'p> {
    /// Who runs it.
    pub(crate) account: Account,
    /// Its folder: where it runs, and what is removed if we are gone.
    pub(crate) folder: &'p Path,
    /// The signal which ends it at once, such as `QUIT`.
    pub(crate) signal: &'static str,
    /// The program with its arguments and what is added to its environment; nothing but these is
    /// taken from the command.
    pub(crate) command: &'p Command,
}

/// A process that does not outlive us.
#[derive(Debug)]
pub(crate) struct Supervised {
    shell: Child,
    orders: ChildStdin,
    signal: &'static str,
    program: String,
    log: PathBuf,
}

impl Supervised {
    /// Starts it; what it says is appended to `log` in its folder.
    pub(crate) fn start(plan: &Plan<'_>) -> Result<Self, ServerError> {
        let log = plan.folder.join("log");
        let program = PathBuf::from(plan.command.get_program());
        let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let unusable = |what: &str| ServerError::unusable(format!("{what} {program}"));
        let opened = File::options().create(true).append(true).open(&log);
        let output = opened.map_err(unusable("open the log of"))?;
        plan.account.give(&log)?;
        let errors = output.try_clone().map_err(unusable("open the log of"))?;
        let mut shell = plan.account.applied(Command::new("sh"));
        shell.args(["-c", SCRIPT, "supervise"]).arg(plan.folder).arg(plan.signal);
        shell.arg(plan.command.get_program()).args(plan.command.get_args());
        let added = plan.command.get_envs();
        shell.envs(added.filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(plan.folder).process_group(0);
        shell.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let mut shell = shell.spawn().map_err(unusable("start the shell that supervises"))?;
        let orders = shell.stdin.take().ok_or_else(|| std::io::Error::other("no pipe"));
        let orders = orders.map_err(unusable("give orders to"))?;
        Ok(Self { shell, orders, signal: plan.signal, program, log })
    }

    /// Has it ended of its own accord?
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.shell.try_wait().ok().flatten()
    }

    /// Sends this signal, such as `INT`, and waits until it has ended.
    pub(crate) fn stop_by(&mut self, signal: &str) -> Result<(), ServerError> {
        // If nobody reads the order, it has ended already.
        let _ = writeln!(self.orders, "{signal}").and_then(|()| self.orders.flush());
        let ended = wait_for(STOP_LIMIT, || self.ended());
        ended.map(|_| ()).ok_or_else(|| self.too_slow("end", STOP_LIMIT))
    }

    /// It should run, and does not.
    pub(crate) fn ended_early(&self) -> ServerError {
        ServerError::Ended { program: self.program.clone(), said: last_lines_of(&self.log) }
    }

    /// It should have done something by now.
    pub(crate) fn too_slow(&self, what: &'static str, limit: Duration) -> ServerError {
        let (program, said) = (self.program.clone(), last_lines_of(&self.log));
        ServerError::TooSlow { program, what, limit, said }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // Whatever goes wrong here, the closing pipe is the second order to stop.
        let _ = self.stop_by(self.signal);
    }
}
