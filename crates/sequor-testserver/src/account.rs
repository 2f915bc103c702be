//! Who runs a server: PostgreSQL and PgBouncer refuse to run as root.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::error::ServerError;

/// Whom to take when we are root, in this order.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// The user that a server's processes run as; nobody in particular unless we are root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    ids: Option<(u32, u32)>,
}

impl Account {
    /// A fresh folder, and the account to which it belongs from now on.
    pub(crate) fn with_folder() -> Result<(Self, TempDir), ServerError> {
        let folder = tempfile::Builder::new()
            .prefix("sequor-")
            .tempdir()
            .map_err(ServerError::unusable("make a temporary folder"))?;
        let account = Self::for_owner_of(folder.path())?;
        account.give(folder.path())?;
        Ok((account, folder))
    }

    /// The same command, to be run by this account.
    pub(crate) fn applied(self, mut command: Command) -> Command {
        if let Some((user, group)) = self.ids {
            command.uid(user).gid(group);
        }
        command
    }

    /// Hands over a file or folder.
    pub(crate) fn give(self, path: &Path) -> Result<(), ServerError> {
        let Some((user, group)) = self.ids else {
            return Ok(());
        };
        chown(path, Some(user), Some(group))
            .map_err(ServerError::unusable(format!("hand over {}", path.display())))
    }

    /// Whoever owns a file that we made is who we are.
    fn for_owner_of(ours: &Path) -> Result<Self, ServerError> {
        let what = || ServerError::unusable(format!("read who owns {}", ours.display()));
        let we = ours.metadata().map_err(what())?.uid();
        let ids = if we == 0 { CANDIDATES.into_iter().find_map(ids_of) } else { None };
        Ok(Self { ids })
    }
}

fn ids_of(name: &str) -> Option<(u32, u32)> {
    let user = number(Command::new("id").args(["-u", name]))?;
    let group = number(Command::new("id").args(["-g", name]))?;
    Some((user, group))
}

fn number(command: &mut Command) -> Option<u32> {
    let output = command.output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}
