//! What cargo knows about the workspace: where it is, its packages and their features.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::tidy::tree::Package;

/// The workspace as `cargo metadata` describes it, read once for each run.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    metadata: Metadata,
}

impl Workspace {
    /// Asks cargo about the workspace of the current directory.
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .no_deps()
            .exec()
            .context("cannot read the workspace (run `cargo metadata --no-deps` to see what is wrong with a manifest)")?;
        let root = metadata.workspace_root.clone().into_std_path_buf();
        Ok(Self { root, metadata })
    }

    /// The folder of the root `Cargo.toml`; every step runs here.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The names of a crate's features, in alphabetical order.
    pub(crate) fn features_of(&self, name: &str) -> Result<Vec<String>> {
        let package = self
            .metadata
            .packages
            .iter()
            .find(|package| package.name.as_str() == name)
            .with_context(|| {
            format!("the workspace has no crate `{name}` (name another one in crates/xtask)")
        })?;
        Ok(package.features.keys().cloned().collect())
    }

    /// The packages with what they depend on outside their tests.
    pub(crate) fn packages(&self) -> Vec<Package> {
        self.metadata
            .packages
            .iter()
            .map(|package| Package {
                name: package.name.to_string(),
                manifest: self.relative(package.manifest_path.as_std_path()),
                dependencies: package
                    .dependencies
                    .iter()
                    .filter(|dependency| dependency.kind != DependencyKind::Development)
                    .map(|dependency| dependency.name.clone())
                    .collect(),
            })
            .collect()
    }

    fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.to_string_lossy().into_owned()
    }
}
