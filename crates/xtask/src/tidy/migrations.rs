//! Migrations only grow, with the same numbers in every dialect.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::finding::Finding;
use super::released::RELEASED;
use super::tree::{SourceFile, Tree};

/// Numbers have no holes and agree between dialects; released files are unchanged.
pub(crate) fn only_grow(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let dialects = numbered(tree, &mut findings);
    let last = dialects.values().filter_map(BTreeMap::last_key_value).map(|(last, _)| *last).max();
    for (dialect, files) in &dialects {
        for number in (1..=last.unwrap_or(0)).filter(|number| !files.contains_key(number)) {
            findings.push(hole(&dialects, dialect, number));
        }
    }
    findings.extend(released_is_unchanged(tree, RELEASED));
    findings
}

/// The files of each dialect by their number.
type Dialects<'t> = BTreeMap<&'t str, BTreeMap<u32, &'t SourceFile>>;

fn numbered<'t>(tree: &'t Tree, findings: &mut Vec<Finding>) -> Dialects<'t> {
    let mut dialects = Dialects::new();
    for file in tree.select("migrations/", ".sql") {
        let Some((dialect, number)) = dialect_and_number(&file.path) else {
            findings.push(Finding::of_file(
                &file.path,
                "not named as a migration",
                "name it migrations/<dialect>/<NNNN>_<what it does>.sql, from 0001",
            ));
            continue;
        };
        if let Some(twin) = dialects.entry(dialect).or_default().insert(number, file) {
            findings.push(Finding::of_file(
                &file.path,
                format!("the number {number:04} is taken by {}", twin.path),
                "take the next free number",
            ));
        }
    }
    dialects
}

fn dialect_and_number(path: &str) -> Option<(&str, u32)> {
    let (dialect, name) = path.strip_prefix("migrations/")?.split_once('/')?;
    let (digits, topic) = name.strip_suffix(".sql")?.split_once('_')?;
    let shaped = digits.len() == 4 && !topic.is_empty() && !name.contains('/');
    let number = digits.parse().ok().filter(|number| *number > 0)?;
    shaped.then_some((dialect, number))
}

fn hole(dialects: &Dialects<'_>, dialect: &str, number: u32) -> Finding {
    let others: BTreeSet<&str> = dialects
        .values()
        .filter_map(|files| files.get(&number))
        .map(|file| file.path.as_str())
        .collect();
    let advice = match others.first() {
        Some(other) => {
            format!("write what {other} does; if that is nothing here, say so in a comment")
        }
        None => "number without holes from 0001".to_owned(),
    };
    Finding::of_file(
        format!("migrations/{dialect}"),
        format!("migration {number:04} is missing"),
        advice,
    )
}

fn released_is_unchanged(tree: &Tree, released: &[(&str, &str)]) -> Vec<Finding> {
    let changed = released.iter().filter(|(path, checksum)| {
        let now = tree.file(path).map(|file| sha256(&file.text));
        now.as_deref() != Some(*checksum)
    });
    changed
        .map(|(path, _)| {
            Finding::of_file(
                *path,
                "a released migration is changed or gone",
                "bring it back from git and write a new migration instead",
            )
        })
        .collect()
}

fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, only_grow, released_is_unchanged};

    fn check(paths: &[&str]) -> String {
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (*path, "")).collect();
        listing(&only_grow(&Tree::of(&files)))
    }

    #[test]
    fn one_dialect_numbers_without_holes() {
        assert_eq!(
            check(&["migrations/sqlite/0001_events.sql", "migrations/sqlite/0002_keys.sql"]),
            ""
        );
        insta::assert_snapshot!(check(&["migrations/sqlite/0001_events.sql", "migrations/sqlite/0003_keys.sql"]),
            @"migrations/sqlite:1: migration 0002 is missing (number without holes from 0001)");
    }

    #[test]
    fn dialects_have_the_same_numbers() {
        insta::assert_snapshot!(check(&[
            "migrations/sqlite/0001_events.sql",
            "migrations/postgres/0001_events.sql",
            "migrations/postgres/0002_keys.sql",
        ]), @"migrations/sqlite:1: migration 0002 is missing (write what migrations/postgres/0002_keys.sql does; if that is nothing here, say so in a comment)");
    }

    #[test]
    fn a_migration_is_named_by_number_and_topic() {
        insta::assert_snapshot!(check(&[
            "migrations/sqlite/0001_events.sql",
            "migrations/sqlite/0001_keys.sql",
            "migrations/sqlite/2_keys.sql",
        ]), @"
        migrations/sqlite/0001_keys.sql:1: the number 0001 is taken by migrations/sqlite/0001_events.sql (take the next free number)
        migrations/sqlite/2_keys.sql:1: not named as a migration (name it migrations/<dialect>/<NNNN>_<what it does>.sql, from 0001)
        ");
    }

    #[test]
    fn a_released_migration_never_changes() {
        let tree = Tree::of(&[
            ("migrations/sqlite/0001_a.sql", "abc"),
            ("migrations/sqlite/0002_b.sql", "abd"),
        ]);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let released = [
            ("migrations/sqlite/0001_a.sql", abc),
            ("migrations/sqlite/0002_b.sql", abc),
            ("migrations/sqlite/0003_c.sql", abc),
        ];
        insta::assert_snapshot!(listing(&released_is_unchanged(&tree, &released)), @"
        migrations/sqlite/0002_b.sql:1: a released migration is changed or gone (bring it back from git and write a new migration instead)
        migrations/sqlite/0003_c.sql:1: a released migration is changed or gone (bring it back from git and write a new migration instead)
        ");
    }
}
