//! Blobs: what git once took, every clone carries for ever.

use super::finding::Finding;
use super::tree::Tree;

/// The largest file that git may take.
const BLOB_BYTES_MAX: usize = 250 * 1024;

/// No file is above 250 KB; cargo writes `Cargo.lock`, so that one is free.
pub(crate) fn nothing_large(tree: &Tree) -> Vec<Finding> {
    let large = |size_bytes: usize| size_bytes > BLOB_BYTES_MAX;
    tree.files()
        .iter()
        .filter(|file| large(file.size_bytes) && file.path != "Cargo.lock")
        .map(|file| {
            Finding::of_file(
                &file.path,
                format!("{} KB, 250 are the budget", file.size_bytes / 1024),
                "generate it, shrink it, or let .gitignore name it",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{BLOB_BYTES_MAX, Tree, nothing_large};

    #[test]
    fn a_large_file_is_found_and_the_lock_file_is_not() {
        let text = "x".repeat(BLOB_BYTES_MAX + 1024);
        let tree = Tree::of(&[("Cargo.lock", &text), ("docs/film.gif", &text), ("docs/a.md", "x")]);
        insta::assert_snapshot!(listing(&nothing_large(&tree)),
            @"docs/film.gif:1: 251 KB, 250 are the budget (generate it, shrink it, or let .gitignore name it)");
    }
}
