//! Hygiene: what was meant for a moment does not stay.

use super::finding::Finding;
use super::rust::{self, Rust};
use super::tree::{SourceFile, Tree};

/// What is not in any Rust file, with what to do instead.
const LEFTOVERS: [(&str, &str); 4] = [
    ("todo!(", "write it, or leave the room for it out"),
    ("unimplemented!(", "write it, or make the missing ability visible in the type"),
    ("dbg!(", "remove it; use a tracing event where the line is worth keeping"),
    ("#[ignore", "repair the test or remove it; slow seeds belong behind SEQUOR_SLOW"),
];

/// What is only in the code that a derive writes for users, where an expectation might not hold.
const ALLOWS: [(&str, &str); 2] = [
    ("#[allow(", "use #[expect(…, reason = \"…\")], which tells when it is no longer needed"),
    ("#![allow(", "use #![expect(…, reason = \"…\")], which tells when it is no longer needed"),
];

/// What is not in a test.
const SLEEP: (&str, &str) = ("sleep(", "wait for a signal or move the manual clock");

/// No leftovers in code, no sleeping in tests; comments and strings may speak of both.
pub(crate) fn nothing_left_over(tree: &Tree) -> Vec<Finding> {
    tree.select("", ".rs").flat_map(file_findings).collect()
}

fn file_findings(file: &SourceFile) -> Vec<Finding> {
    let rust = Rust::read(&file.text);
    let quoted = rust.quoted_lines();
    let sleep = is_in_tests(file).then_some(SLEEP);
    let mut findings = Vec::new();
    for (number, line) in rust.code_lines() {
        let is_quoted = quoted.iter().any(|(first, last)| (*first..=*last).contains(&number));
        let allows = ALLOWS.into_iter().filter(|_| !is_quoted);
        let patterns = LEFTOVERS.into_iter().chain(allows).chain(sleep);
        let hits = patterns.filter(|(pattern, _)| rust::contains(line, pattern));
        findings.extend(hits.map(|(pattern, advice)| {
            Finding::new(&file.path, number, format!("`{pattern}` in the code"), advice)
        }));
    }
    findings
}

fn is_in_tests(file: &SourceFile) -> bool {
    file.path.split('/').any(|part| part == "tests")
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, nothing_left_over};

    fn check(path: &str, text: &str) -> String {
        listing(&nothing_left_over(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn leftovers_are_found_in_code_only() {
        insta::assert_snapshot!(check("crates/x/src/a.rs", "\
            /// todo!() in a comment\n\
            fn f() { g(\"dbg!(x)\"); todo!() }\n\
            #[ignore = \"slow\"]\n\
            #[allow(dead_code)]\n\
            #[expect(dead_code, reason = \"…\")]\n\
            fn h() { my_dbg!(1); sleep(1) }\n\
        "), @"
        crates/x/src/a.rs:2: `todo!(` in the code (write it, or leave the room for it out)
        crates/x/src/a.rs:3: `#[ignore` in the code (repair the test or remove it; slow seeds belong behind SEQUOR_SLOW)
        crates/x/src/a.rs:4: `#[allow(` in the code (use #[expect(…, reason = \"…\")], which tells when it is no longer needed)
        ");
    }

    #[test]
    fn a_derive_may_write_an_allow_for_its_user() {
        let derive = "fn derive() {\nquote! {\n#[allow(deprecated)]\nimpl X for Y { fn f() {} }\n}\n}\n#[allow(dead_code)]\n";
        insta::assert_snapshot!(check("crates/x/src/a.rs", derive),
            @r##"crates/x/src/a.rs:7: `#[allow(` in the code (use #[expect(…, reason = "…")], which tells when it is no longer needed)"##);
    }

    #[test]
    fn a_test_does_not_sleep() {
        insta::assert_snapshot!(check("crates/x/tests/it/a.rs", "tokio::time::sleep(d).await;\nno_sleep(d);\n"),
            @"crates/x/tests/it/a.rs:1: `sleep(` in the code (wait for a signal or move the manual clock)");
    }
}
