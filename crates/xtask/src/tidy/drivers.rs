//! Drivers: whoever knows one finds their way in the other.

use super::finding::Finding;
use super::tree::{SourceFile, Tree};

const DRIVERS: [&str; 2] = ["crates/sequor-sqlite/src/", "crates/sequor-postgres/src/"];

/// A file that only one driver has, with the reason.
type Difference = (&'static str, &'static str);

const DIFFERENCES: [Difference; 6] = [
    ("crates/sequor-sqlite/src/readers.rs", "connections that only read, beside the one writer"),
    ("crates/sequor-postgres/src/pool.rs", "connections of a server read and write"),
    ("crates/sequor-postgres/src/partitions.rs", "a SQLite file is one partition"),
    ("crates/sequor-postgres/src/statement.rs", "a SQLite statement travels nowhere"),
    ("crates/sequor-postgres/src/literal.rs", "behind a pooler parameters travel inside the text"),
    ("crates/sequor-postgres/src/retention.rs", "keys are archived on a server only"),
];

/// The files at the top of both drivers bear the same names, apart from declared differences.
pub(crate) fn bear_the_same_names(tree: &Tree) -> Vec<Finding> {
    differences(tree, &DIFFERENCES)
}

fn differences(tree: &Tree, declared: &[Difference]) -> Vec<Finding> {
    let [one, other] = DRIVERS;
    if DRIVERS.iter().any(|driver| top(tree, driver).next().is_none()) {
        return Vec::new();
    }
    let lonely: Vec<(&str, String)> =
        without_twin(tree, one, other).chain(without_twin(tree, other, one)).collect();
    let undeclared = lonely.iter().filter(|(path, _)| declared.iter().all(|(one, _)| one != path));
    let undeclared = undeclared.map(|(path, twin)| {
        Finding::of_file(
            *path,
            format!("there is no {twin}"),
            "name what does the same alike, or declare the difference with its reason in \
             crates/xtask/src/tidy/drivers.rs",
        )
    });
    let stale = declared.iter().filter(|(path, _)| lonely.iter().all(|(one, _)| one != path));
    let stale = stale.map(|(path, _)| {
        Finding::of_file(
            *path,
            "declared as a difference between the drivers, and none any more",
            "remove its line in crates/xtask/src/tidy/drivers.rs",
        )
    });
    undeclared.chain(stale).collect()
}

/// The files of a driver that the other one lacks, with the path where they would be.
fn without_twin<'t>(
    tree: &'t Tree,
    driver: &'t str,
    other: &'t str,
) -> impl Iterator<Item = (&'t str, String)> {
    top(tree, driver)
        .map(move |file| (&*file.path, format!("{other}{}", file.name())))
        .filter(|(_, twin)| tree.file(twin).is_none())
}

/// The Rust files that lie directly in a folder.
fn top<'t>(tree: &'t Tree, folder: &'t str) -> impl Iterator<Item = &'t SourceFile> {
    tree.select(folder, ".rs").filter(|file| file.path.len() == folder.len() + file.name().len())
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Difference, Tree, differences};

    const POOL: Difference = ("crates/sequor-postgres/src/pool.rs", "a server has sessions");

    fn check(paths: &[&str], declared: &[Difference]) -> String {
        let paths: Vec<String> = paths.iter().map(|path| format!("crates/sequor-{path}")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        listing(&differences(&Tree::of(&files), declared))
    }

    #[test]
    fn the_same_names_and_declared_differences_are_fine() {
        let paths = ["sqlite/src/log.rs", "postgres/src/log.rs", "postgres/src/pool.rs"];
        assert_eq!(check(&paths, &[POOL]), "");
        assert_eq!(check(&["sqlite/src/log.rs"], &[]), "", "there is one driver only");
    }

    #[test]
    fn folders_of_the_drivers_may_differ() {
        let paths = [
            "sqlite/src/log.rs",
            "postgres/src/log.rs",
            "postgres/src/log/mark.rs",
            "memory/src/x.rs",
        ];
        assert_eq!(check(&paths, &[]), "");
    }

    #[test]
    fn a_file_of_one_driver_has_a_twin_in_the_other() {
        let paths = [
            "sqlite/src/log.rs",
            "sqlite/src/events.rs",
            "postgres/src/log.rs",
            "postgres/src/event.rs",
        ];
        insta::assert_snapshot!(check(&paths, &[]), @"
        crates/sequor-sqlite/src/events.rs:1: there is no crates/sequor-postgres/src/events.rs (name what does the same alike, or declare the difference with its reason in crates/xtask/src/tidy/drivers.rs)
        crates/sequor-postgres/src/event.rs:1: there is no crates/sequor-sqlite/src/event.rs (name what does the same alike, or declare the difference with its reason in crates/xtask/src/tidy/drivers.rs)
        ");
    }

    #[test]
    fn a_difference_that_is_none_any_more_is_not_declared() {
        let paths = ["sqlite/src/pool.rs", "postgres/src/pool.rs"];
        insta::assert_snapshot!(check(&paths, &[POOL]), @"crates/sequor-postgres/src/pool.rs:1: declared as a difference between the drivers, and none any more (remove its line in crates/xtask/src/tidy/drivers.rs)");
        insta::assert_snapshot!(check(&["sqlite/src/log.rs", "postgres/src/log.rs"], &[POOL]), @"crates/sequor-postgres/src/pool.rs:1: declared as a difference between the drivers, and none any more (remove its line in crates/xtask/src/tidy/drivers.rs)");
    }
}
