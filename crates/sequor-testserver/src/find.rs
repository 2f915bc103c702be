//! Where PostgreSQL's programs are.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::ServerError;

/// The oldest major version that sequor supports.
pub const MAJOR_MIN: u32 = 15;

/// Where packages put one folder for each major version, as (folder, what stands below it).
const VERSIONED: [(&str, &str, &str); 5] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql", "bin"),
];

/// The folder with the programs of one PostgreSQL version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
    major: u32,
}

impl Binaries {
    /// The programs to use: those in the folder that `PG_BIN` names, else the newest installed.
    ///
    /// # Errors
    /// [`ServerError::NotInstalled`] where there are none of at least version [`MAJOR_MIN`].
    pub fn find() -> Result<Self, ServerError> {
        let named = env::var_os("PG_BIN").and_then(|folder| Self::in_folder(Path::new(&folder)));
        let newest = || all_versions().pop();
        match named.or_else(newest) {
            Some(binaries) if binaries.major >= MAJOR_MIN => Ok(binaries),
            older => Err(ServerError::NotInstalled {
                program: "postgres",
                older: older.into_iter().collect(),
            }),
        }
    }

    /// The programs in this folder; nothing if no server is among them that says its version.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let has = |name: &str| folder.join(name).is_file();
        if !has("initdb") || !has("postgres") {
            return None;
        }
        let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
        let major = major_of(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { folder: folder.to_owned(), major })
    }

    /// The folder that they are in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Their major version, at least [`MAJOR_MIN`] where [`find`](Self::find) returned them.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The path of one of the programs, such as `pg_dump`; nobody looked whether it is there.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The installed versions that will do, one for each major version, the newest last.
#[must_use]
pub fn installed_versions() -> Vec<Binaries> {
    let mut versions = all_versions();
    versions.retain(|binaries| binaries.major >= MAJOR_MIN);
    versions
}

/// One of each major version, the newest last.
fn all_versions() -> Vec<Binaries> {
    let mut versions = BTreeMap::new();
    for folder in packaged().into_iter().chain(on_the_path()) {
        if let Some(binaries) = Binaries::in_folder(&folder) {
            versions.entry(binaries.major).or_insert(binaries);
        }
    }
    versions.into_values().collect()
}

/// The folders of packages, in the order of [`VERSIONED`].
fn packaged() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for (parent, prefix, below) in VERSIONED {
        let Ok(children) = std::fs::read_dir(parent) else {
            continue;
        };
        for child in children.flatten() {
            if child.file_name().to_string_lossy().starts_with(prefix) {
                folders.push(child.path().join(below));
            }
        }
    }
    folders
}

/// The folder that `pg_config` tells, and each one in `PATH`.
fn on_the_path() -> Vec<PathBuf> {
    let told = Command::new("pg_config").arg("--bindir").output().ok();
    let told = told.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let path = env::var_os("PATH").unwrap_or_default();
    told.into_iter().map(PathBuf::from).chain(env::split_paths(&path)).collect()
}

/// The number in `postgres (PostgreSQL) 17beta1 (Debian …)`.
fn major_of(said: &str) -> Option<u32> {
    let (_, version) = said.split_once(") ")?;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major_of;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(major_of("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some(15));
        assert_eq!(major_of("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(major_of("no such thing"), None);
    }
}
