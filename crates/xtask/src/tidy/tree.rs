//! The work tree in memory, so that rules are plain functions.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::workspace::Workspace;

/// All files which git knows or would take, and the workspace's packages.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: Vec<SourceFile>,
    packages: Vec<Package>,
}

/// One file, with its path from the root (always with `/`).
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// For example `crates/sequor-core/src/lib.rs`.
    pub(crate) path: String,
    /// The content; bytes that are no UTF-8 are replaced.
    pub(crate) text: String,
    /// The size on disk.
    pub(crate) size_bytes: usize,
}

/// One package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    /// The crate's name.
    pub(crate) name: String,
    /// The manifest's path from the root.
    pub(crate) manifest: String,
    /// The names of all crates it depends on, dev-dependencies left out.
    pub(crate) dependencies: Vec<String>,
}

impl Tree {
    /// Reads the tree from the disk.
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let root = workspace.root();
        let files = listed_by_git(root)?
            .into_iter()
            .filter(|path| root.join(path).is_file())
            .map(|path| SourceFile::read(root, path))
            .collect::<Result<_>>()?;
        Ok(Self { files, packages: workspace.packages() })
    }

    /// Every file.
    pub(crate) fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Every file whose path starts and ends like this.
    pub(crate) fn select<'t>(
        &'t self,
        start: &'t str,
        end: &'t str,
    ) -> impl Iterator<Item = &'t SourceFile> {
        self.files
            .iter()
            .filter(move |file| file.path.starts_with(start) && file.path.ends_with(end))
    }

    /// The file at this path.
    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Is there a file or a folder at this path?
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.iter().any(|file| {
            let rest = file.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The workspace's packages.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.packages
    }
}

impl SourceFile {
    /// Does this file belong to tests or benchmarks as a whole?
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| ["tests", "tests.rs", "benches"].contains(&part))
    }

    /// The crate's folder name, for a file under `crates/`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    fn read(root: &Path, path: String) -> Result<Self> {
        let bytes = std::fs::read(root.join(&path))
            .with_context(|| format!("cannot read {path} (is it readable for you?)"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Self { path, text, size_bytes: bytes.len() })
    }
}

fn listed_by_git(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .context("cannot start git (tidy asks it which files count; install it)")?;
    ensure!(
        output.status.success(),
        "git cannot list the files (is this a clone?): {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let names = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<String> = names.split_terminator('\0').map(Into::into).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

#[cfg(test)]
impl Tree {
    /// A made-up tree.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
            size_bytes: text.len(),
        });
        Self { files: files.collect(), packages: Vec::new() }
    }

    /// The same tree with one more package and its manifest.
    pub(crate) fn with_package(mut self, manifest: &str, dependencies: &[&str]) -> Self {
        let folder = manifest.trim_end_matches("/Cargo.toml");
        self.packages.push(Package {
            name: folder.rsplit('/').next().unwrap().to_owned(),
            manifest: manifest.to_owned(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        });
        let lines: Vec<String> =
            dependencies.iter().map(|name| format!("{name}.workspace = true")).collect();
        self.files.extend(Self::of(&[(manifest, &lines.join("\n"))]).files);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn folders_exist_by_their_files() {
        let tree = Tree::of(&[("docs/adr/0001-x.md", "")]);
        assert!(tree.has("docs/adr/") && tree.has("docs/adr") && tree.has("docs/adr/0001-x.md"));
        assert!(!tree.has("docs/ad") && !tree.has("docs/adr/0001"));
    }
}
