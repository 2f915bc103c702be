//! Links: a page that names a file which is gone lies to its reader.

use super::finding::Finding;
use super::markdown::{Mention, Target, mentions, resolve};
use super::tree::{SourceFile, Tree};

/// A code span that starts like this is a path from the root.
const FOLDERS: [&str; 4] = ["crates/", "examples/", "migrations/", "docs/"];

/// Every path that docs/ and README.md name in backticks or as a link exists.
pub(crate) fn named_paths_exist(tree: &Tree) -> Vec<Finding> {
    let pages = tree.select("docs/", ".md").chain(tree.file("README.md"));
    pages.flat_map(|page| page_findings(tree, page)).collect()
}

fn page_findings(tree: &Tree, page: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Mention { line, target } in mentions(&page.text) {
        let (named, path) = match target {
            Target::Code(code) => (code, path_in_code(code)),
            Target::Link(link) => (link, path_in_link(page, link)),
        };
        if path.is_some_and(|path| !tree.has(&path)) {
            let message = format!("`{named}` does not exist");
            let advice = "name what took its place; a link is relative to its page, a path in backticks to the root";
            findings.push(Finding::new(&page.path, line, message, advice));
        }
    }
    findings
}

/// The path in a span such as `crates/x/src/lib.rs:12`; patterns and placeholders are no paths.
fn path_in_code(code: &str) -> Option<String> {
    let path = code.split([':', '#']).next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_path = FOLDERS.iter().any(|folder| path.starts_with(folder))
        && path.chars().all(plain)
        && !path.contains("NNNN")
        && !path.contains("...");
    is_path.then(|| path.to_owned())
}

/// The path of a link that stays in the tree; a target that leaves it is returned as it is.
fn path_in_link(page: &SourceFile, link: &str) -> Option<String> {
    let path = link.split(['#', '?']).next()?;
    let elsewhere = path.is_empty() || path.starts_with('/') || path.contains(':');
    (!elsewhere).then(|| resolve(&page.path, path).unwrap_or_else(|| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, named_paths_exist};

    fn check(page: &str) -> String {
        let tree = Tree::of(&[
            ("docs/journeys/command.md", page),
            ("docs/ARCHITECTURE.md", ""),
            ("crates/sequor-bus/src/execute.rs", ""),
        ]);
        listing(&named_paths_exist(&tree))
    }

    #[test]
    fn paths_that_exist_are_fine() {
        assert_eq!(
            check("`crates/sequor-bus/src/execute.rs:12`, `docs/`, [up](../ARCHITECTURE.md#top)"),
            ""
        );
    }

    #[test]
    fn what_is_no_path_is_left_alone() {
        assert_eq!(
            check(
                "`crates/*/sql/`, `docs/adr/NNNN-title.md`, [x](https://x.org/a), [y](#y), `cargo run`"
            ),
            ""
        );
    }

    #[test]
    fn a_path_that_is_gone_is_found_where_it_is_named() {
        insta::assert_snapshot!(check("First\n`crates/sequor-bus/src/gone.rs`\n[up](ARCHITECTURE.md)\n[out](../../../x)"), @"
        docs/journeys/command.md:2: `crates/sequor-bus/src/gone.rs` does not exist (name what took its place; a link is relative to its page, a path in backticks to the root)
        docs/journeys/command.md:3: `ARCHITECTURE.md` does not exist (name what took its place; a link is relative to its page, a path in backticks to the root)
        docs/journeys/command.md:4: `../../../x` does not exist (name what took its place; a link is relative to its page, a path in backticks to the root)
        ");
    }
}
