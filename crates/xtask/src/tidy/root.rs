//! Root listing: whoever opens the project sees in a minute where things are.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::tree::Tree;

const ALLOWED: [&str; 14] = [
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE",
    "README.md",
    "crates",
    "examples",
    "migrations",
    "docs",
    ".cargo",
    ".ci",
    ".config",
    ".clippy.toml",
    ".rustfmt.toml",
    ".gitignore",
];

/// Nothing lies at the root but what the layout names.
pub(crate) fn only_what_the_layout_names(tree: &Tree) -> Vec<Finding> {
    let mut strangers = BTreeMap::new();
    for file in tree.files() {
        let top = file.path.split('/').next().unwrap_or_default();
        if !ALLOWED.contains(&top) {
            strangers.entry(top).or_insert(file);
        }
    }
    strangers
        .into_iter()
        .map(|(top, file)| {
            Finding::of_file(
                &file.path,
                format!("`{top}` is not part of the root"),
                "move it below crates/, examples/, migrations/ or docs/, or let .gitignore name it",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, only_what_the_layout_names};

    #[test]
    fn a_stranger_at_the_root_is_named_once() {
        let tree = Tree::of(&[
            ("Cargo.toml", ""),
            ("crates/x/src/lib.rs", ""),
            ("scripts/a.sh", ""),
            ("scripts/b.sh", ""),
            ("notes.txt", ""),
        ]);
        insta::assert_snapshot!(listing(&only_what_the_layout_names(&tree)), @"
        notes.txt:1: `notes.txt` is not part of the root (move it below crates/, examples/, migrations/ or docs/, or let .gitignore name it)
        scripts/a.sh:1: `scripts` is not part of the root (move it below crates/, examples/, migrations/ or docs/, or let .gitignore name it)
        ");
    }
}
