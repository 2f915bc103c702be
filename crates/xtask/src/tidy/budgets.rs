//! Budgets: a file fits into a head. Clippy counts the lines of functions; this counts files.

use super::finding::Finding;
use super::tree::{SourceFile, Tree};

/// The budget of a `.rs` or `.sql` file; aim at half of it.
const FILE_LINES_MAX: usize = 600;

/// Files above the budget with the lines they may have. This list may only shrink.
const EXCEPTIONS: &[(&str, usize)] = &[];

/// No file is above its budget, and no exception is out of date.
pub(crate) fn files_stay_small(tree: &Tree) -> Vec<Finding> {
    over_budget(tree, EXCEPTIONS)
}

fn over_budget(tree: &Tree, exceptions: &[(&str, usize)]) -> Vec<Finding> {
    let code = tree.select("", ".rs").chain(tree.select("", ".sql"));
    code.filter_map(|file| above(file, exceptions))
        .chain(exceptions.iter().filter_map(|exception| stale(tree, *exception)))
        .collect()
}

fn above(file: &SourceFile, exceptions: &[(&str, usize)]) -> Option<Finding> {
    let lines = file.text.lines().count();
    let exception = exceptions.iter().find(|(path, _)| *path == file.path);
    let budget = exception.map_or(FILE_LINES_MAX, |(_, lines)| *lines);
    (lines > budget).then(|| {
        Finding::new(
            &file.path,
            budget + 1,
            format!("{lines} lines, {budget} are the budget"),
            "split it by topic into a folder of the same name",
        )
    })
}

fn stale(tree: &Tree, (path, allowed): (&str, usize)) -> Option<Finding> {
    let lines = tree.file(path).map_or(0, |file| file.text.lines().count());
    if lines >= allowed && allowed > FILE_LINES_MAX {
        return None;
    }
    let advice = if lines > FILE_LINES_MAX {
        format!("lower it to {lines} in crates/xtask/src/tidy/budgets.rs")
    } else {
        "remove it from crates/xtask/src/tidy/budgets.rs".to_owned()
    };
    Some(Finding::of_file(
        path,
        format!("the exception for {allowed} lines is out of date"),
        advice,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, over_budget};

    fn check(lines: usize, exceptions: &[(&str, usize)]) -> String {
        let text = "x\n".repeat(lines);
        listing(&over_budget(&Tree::of(&[("crates/x/src/a.rs", &text)]), exceptions))
    }

    #[test]
    fn six_hundred_lines_are_enough() {
        assert_eq!(check(600, &[]), "");
        insta::assert_snapshot!(check(601, &[]), @"crates/x/src/a.rs:601: 601 lines, 600 are the budget (split it by topic into a folder of the same name)");
    }

    #[test]
    fn an_exception_holds_but_does_not_grow() {
        let exceptions = [("crates/x/src/a.rs", 700)];
        assert_eq!(check(700, &exceptions), "");
        insta::assert_snapshot!(check(701, &exceptions), @"crates/x/src/a.rs:701: 701 lines, 700 are the budget (split it by topic into a folder of the same name)");
    }

    #[test]
    fn an_exception_only_shrinks() {
        let exceptions = [("crates/x/src/a.rs", 700), ("crates/x/src/gone.rs", 650)];
        insta::assert_snapshot!(check(650, &exceptions), @"
        crates/x/src/a.rs:1: the exception for 700 lines is out of date (lower it to 650 in crates/xtask/src/tidy/budgets.rs)
        crates/x/src/gone.rs:1: the exception for 650 lines is out of date (remove it from crates/xtask/src/tidy/budgets.rs)
        ");
    }
}
