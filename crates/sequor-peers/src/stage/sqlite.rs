//! Files of SQLite in a temporary folder, on the disk where the servers of PostgreSQL have theirs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use tempfile::TempDir;

use super::{Network, Stage, fill_accounts};
use crate::peer::{Place, System};

/// A folder with one filled database for each system.
#[derive(Debug)]
pub(crate) struct SqliteStage {
    folder: TempDir,
}

impl SqliteStage {
    /// With nothing in it yet.
    pub(crate) fn start() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    /// An empty folder: whatever was there is gone.
    fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.path().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

#[async_trait(?Send)]
impl Stage for SqliteStage {
    async fn fill(&self, system: &dyn System) -> Result<()> {
        let place = place(&self.empty(system.name())?, false);
        system.install(&place).await?;
        fill_accounts(system, &place).await
    }

    async fn copy(&self, system: &dyn System, _: Network) -> Result<Place> {
        let copy = self.empty(COPY)?;
        for file in fs::read_dir(self.folder.path().join(system.name()))? {
            let file = file?;
            let to = copy.join(file.file_name());
            fs::copy(file.path(), &to).with_context(|| to.display().to_string())?;
            // Now, and not while something is measured.
            fs::File::open(&to)?.sync_all()?;
        }
        Ok(place(&copy, true))
    }

    fn server(&self) -> Result<Option<u32>> {
        Ok(None)
    }
}

/// The folder that is made anew for each measurement.
const COPY: &str = "copy";

fn place(folder: &Path, flushes: bool) -> Place {
    Place { url: folder.join("accounts.db").display().to_string(), flushes }
}
