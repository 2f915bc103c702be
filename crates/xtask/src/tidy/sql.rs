//! SQL: one statement, one `.sql` file, named and used in one place.

use super::finding::Finding;
use super::rust::Rust;
use super::tree::{SourceFile, Tree};

/// A string that starts with one of these words and goes on is taken for SQL.
const VERBS: [&str; 5] = ["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"];

/// Statements live in `crates/*/sql/`, one a file, each used by one `.rs` file of its crate.
pub(crate) fn one_statement_one_file(tree: &Tree) -> Vec<Finding> {
    let statements = tree.select("crates/", ".sql").filter(|file| is_statement(file));
    statements
        .flat_map(|file| [not_one_statement(file), not_one_user(tree, file)])
        .flatten()
        .chain(tree.select("crates/", ".rs").flat_map(sql_in_rust))
        .collect()
}

/// Is it below the `sql/` folder of its crate?
fn is_statement(file: &SourceFile) -> bool {
    file.path.split('/').nth(2) == Some("sql")
}

fn not_one_statement(file: &SourceFile) -> Option<Finding> {
    let lines = file.text.lines();
    let bare: Vec<&str> = lines.filter_map(|line| line.split("--").next()).collect();
    let bare = bare.join("\n");
    let count = bare.split(';').filter(|part| !part.trim().is_empty()).count();
    (count != 1).then(|| {
        Finding::of_file(
            &file.path,
            format!("{count} statements in one file"),
            "give each statement its own file",
        )
    })
}

fn not_one_user(tree: &Tree, file: &SourceFile) -> Option<Finding> {
    let sources = tree.select("crates/", ".rs").filter(|source| {
        source.crate_name() == file.crate_name()
            && !source.is_test()
            && names_file(source, file.name())
    });
    let users: Vec<&str> = sources.map(|source| source.path.as_str()).collect();
    let (message, advice) = match users.as_slice() {
        [_] => return None,
        [] => (
            "no .rs file uses this statement".to_owned(),
            "include it by its file name, or remove it",
        ),
        _ => (format!("used in {}", users.join(" and ")), "call the function that has it"),
    };
    Some(Finding::of_file(&file.path, message, advice))
}

fn names_file(source: &SourceFile, name: &str) -> bool {
    source.text.contains(name)
        && Rust::read(&source.text).strings().iter().any(|string| {
            let rest = string.text.strip_suffix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/')) && !string.in_test
        })
}

fn sql_in_rust(file: &SourceFile) -> Vec<Finding> {
    let makes_tables_of_others = ["xtask", "sequor-peers", "sequor-testserver"];
    if file.is_test() || file.crate_name().is_some_and(|it| makes_tables_of_others.contains(&it)) {
        return Vec::new();
    }
    let rust = Rust::read(&file.text);
    let statements = rust.strings().iter().filter(|string| !string.in_test && is_sql(&string.text));
    statements
        .map(|string| {
            Finding::new(
                &file.path,
                string.line,
                "SQL inside Rust",
                "move it to a file in the crate's sql/ folder, named as the function that runs it",
            )
        })
        .collect()
}

fn is_sql(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next().is_some_and(|word| VERBS.contains(&word)) && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, one_statement_one_file};

    fn check(files: &[(&str, &str)]) -> String {
        listing(&one_statement_one_file(&Tree::of(files)))
    }

    #[test]
    fn a_statement_used_once_is_fine() {
        let plans =
            ("crates/x/tests/it/plans.rs", r#"include_str!("../../sql/load.sql"); "SELECT 1""#);
        assert_eq!(
            check(&[
                ("crates/x/sql/load.sql", "-- why; and how\nSELECT 1;\n"),
                ("crates/x/src/load.rs", r#"const SQL: &str = include_str!("../sql/load.sql");"#),
                plans,
            ]),
            ""
        );
    }

    #[test]
    fn a_statement_has_one_user() {
        let user = r#"query_file!("sql/load.sql")"#;
        insta::assert_snapshot!(check(&[
            ("crates/x/sql/load.sql", "SELECT 1"),
            ("crates/x/sql/reload.sql", "SELECT 1"),
            ("crates/x/src/a.rs", user),
            ("crates/x/src/b.rs", user),
            ("crates/y/src/c.rs", r#""sql/reload.sql""#),
        ]), @"
        crates/x/sql/load.sql:1: used in crates/x/src/a.rs and crates/x/src/b.rs (call the function that has it)
        crates/x/sql/reload.sql:1: no .rs file uses this statement (include it by its file name, or remove it)
        ");
    }

    #[test]
    fn a_file_has_one_statement() {
        insta::assert_snapshot!(check(&[
            ("crates/x/sql/load.sql", "SELECT 1;\nSELECT 2;"),
            ("crates/x/src/a.rs", r#""load.sql""#),
        ]), @"crates/x/sql/load.sql:1: 2 statements in one file (give each statement its own file)");
    }

    #[test]
    fn rust_has_no_sql() {
        let source = "// \"SELECT 1\"\nfn f() { g(\"DELETE\"); g(\"\n  DELETE FROM t\"); }\n#[cfg(test)]\nmod tests { const S: &str = \"SELECT 1\"; }\n";
        insta::assert_snapshot!(check(&[("crates/x/src/a.rs", source), ("crates/xtask/src/a.rs", source), ("examples/a/src/a.rs", source)]),
            @"crates/x/src/a.rs:2: SQL inside Rust (move it to a file in the crate's sql/ folder, named as the function that runs it)");
    }
}
