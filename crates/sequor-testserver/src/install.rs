//! What is missing is installed, where that can be done without asking anybody: as root on Debian.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{ServerError, last_lines};
use crate::find::Binaries;

/// Installs one package; see there what it leaves alone.
const SCRIPT: &str = include_str!("install.sh");

/// Where `pgbouncer` may be apart from the folders in `PATH`.
const BOUNCER_FOLDERS: [&str; 3] = ["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin"];

impl Binaries {
    /// The programs that [`find`](Self::find) finds; if there are none, Debian's package is installed
    /// first, where we are root or `sudo` asks for no password. Its own cluster is not started.
    ///
    /// # Errors
    /// [`ServerError::NotInstalled`] where nothing can be installed,
    /// [`ServerError::NotInstallable`] where it was tried in vain.
    pub fn find_or_install() -> Result<Self, ServerError> {
        Self::find().or_else(|missing| {
            install("postgresql", "postgres").unwrap_or(Err(missing))?;
            Self::find()
        })
    }
}

/// The program `pgbouncer`, installed as [`Binaries::find_or_install`] does if it is missing.
///
/// # Errors
/// As there.
pub fn install_pgbouncer() -> Result<PathBuf, ServerError> {
    let missing = || ServerError::NotInstalled { program: "pgbouncer", older: Vec::new() };
    if let Some(program) = find_pgbouncer() {
        return Ok(program);
    }
    install("pgbouncer", "pgbouncer").unwrap_or_else(|| Err(missing()))?;
    find_pgbouncer().ok_or_else(missing)
}

fn find_pgbouncer() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(BOUNCER_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

/// Installs a package for the sake of a program; nothing if this machine has no way to.
fn install(package: &str, program: &'static str) -> Option<Result<(), ServerError>> {
    let mut command = shell_of_root().filter(|_| Path::new("/usr/bin/apt-get").is_file())?;
    command.args(["-c", SCRIPT, "install", package]);
    let output = command.stdin(Stdio::null()).output();
    Some(output.map_err(ServerError::unusable("run apt-get")).and_then(|output| {
        let said = [output.stdout, output.stderr].concat();
        let said = last_lines(&String::from_utf8_lossy(&said));
        let failed = ServerError::NotInstallable { program, said };
        if output.status.success() { Ok(()) } else { Err(failed) }
    }))
}

/// A shell with root's rights, if we can have one without a password.
fn shell_of_root() -> Option<Command> {
    let succeeds = |command: &mut Command| {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    if succeeds(Command::new("sh").args(["-c", "[ \"$(id -u)\" = 0 ]"])) {
        return Some(Command::new("sh"));
    }
    if !succeeds(Command::new("sudo").args(["-n", "true"])) {
        return None;
    }
    let mut command = Command::new("sudo");
    command.args(["-n", "sh"]);
    Some(command)
}
