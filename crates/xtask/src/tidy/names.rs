//! Names: nouns hold, verbs do. A word that fits everywhere tells nothing.

use super::finding::Finding;
use super::rust::{self, Rust};
use super::tree::{SourceFile, Tree};

/// Words that name no content, in files, folders and crates.
const BANNED_IN_PATHS: [&str; 7] = ["manager", "helper", "util", "utils", "common", "base", "impl"];

/// Words that name no content, in types; their plurals count too.
const BANNED_IN_TYPES: [&str; 3] = ["Manager", "Helper", "Util"];

/// No banned word in the names of files, folders and types.
pub(crate) fn nouns_hold_verbs_do(tree: &Tree) -> Vec<Finding> {
    let rust = || tree.select("", ".rs");
    let paths = rust().chain(tree.select("", ".sql")).filter_map(path_finding);
    paths.chain(rust().flat_map(type_findings)).collect()
}

fn path_finding(file: &SourceFile) -> Option<Finding> {
    let stem = file.path.rsplit_once('.').map_or(&*file.path, |(stem, _)| stem);
    let word = stem.split(['/', '_', '-']).find(|word| BANNED_IN_PATHS.contains(word))?;
    Some(Finding::of_file(
        &file.path,
        format!("`{word}` in a file name"),
        "name the file after what it holds: `backoff.rs`, not `retry_helper.rs`",
    ))
}

fn type_findings(file: &SourceFile) -> Vec<Finding> {
    let rust = Rust::read(&file.text);
    let lines = rust.code_lines();
    lines
        .filter_map(|(number, line)| {
            let name = declared_type(line)?;
            let word = BANNED_IN_TYPES.iter().find(|word| has_word(name, word))?;
            Some(Finding::new(
                &file.path,
                number,
                format!("`{word}` in the type name `{name}`"),
                "name the type after what it is or does",
            ))
        })
        .collect()
}

fn declared_type(line: &str) -> Option<&str> {
    let mut words = rust::words(line);
    words.find(|word| ["struct", "enum", "trait"].contains(word))?;
    words.next()
}

/// Is `word` one of the words that a camel-case name is made of?
fn has_word(name: &str, word: &str) -> bool {
    name.match_indices(word).any(|(start, _)| {
        let rest = name.get(start + word.len()..).unwrap_or_default();
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        !rest.starts_with(|next: char| next.is_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, nouns_hold_verbs_do};

    fn check(files: &[(&str, &str)]) -> String {
        listing(&nouns_hold_verbs_do(&Tree::of(files)))
    }

    #[test]
    fn a_file_is_named_after_what_it_holds() {
        insta::assert_snapshot!(check(&[
            ("crates/x/src/backoff.rs", ""),
            ("crates/x/src/implement.rs", ""),
            ("crates/x/src/retry_helper.rs", ""),
            ("crates/x/tests/common/store.rs", ""),
            ("crates/x/sql/base.sql", ""),
        ]), @"
        crates/x/src/retry_helper.rs:1: `helper` in a file name (name the file after what it holds: `backoff.rs`, not `retry_helper.rs`)
        crates/x/tests/common/store.rs:1: `common` in a file name (name the file after what it holds: `backoff.rs`, not `retry_helper.rs`)
        crates/x/sql/base.sql:1: `base` in a file name (name the file after what it holds: `backoff.rs`, not `retry_helper.rs`)
        ");
    }

    #[test]
    fn a_type_is_named_after_what_it_is() {
        insta::assert_snapshot!(check(&[(
            "crates/x/src/lib.rs",
            "// struct OldManager;\npub struct StreamManager<T>(T);\nenum Utilization {}\npub(crate) trait TimeUtils {}\n",
        )]), @"
        crates/x/src/lib.rs:2: `Manager` in the type name `StreamManager` (name the type after what it is or does)
        crates/x/src/lib.rs:4: `Util` in the type name `TimeUtils` (name the type after what it is or does)
        ");
    }
}
