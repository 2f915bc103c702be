//! ADR index: a decision nobody can find is taken twice.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::markdown::{Mention, Target, mentions};
use super::tree::{SourceFile, Tree};

const FOLDER: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";

/// The index lists every decision and nothing else, and no number is used twice.
pub(crate) fn index_is_complete(tree: &Tree) -> Vec<Finding> {
    let decisions: Vec<&SourceFile> =
        tree.select(FOLDER, ".md").filter(|file| file.path != INDEX).collect();
    let index = tree.file(INDEX);
    let mut findings = numbers_are_unique(&decisions);
    findings.extend(decisions.iter().filter_map(|decision| unlisted(index, decision)));
    findings.extend(index.into_iter().flat_map(|index| strangers(tree, index)));
    findings
}

fn numbers_are_unique(decisions: &[&SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut by_number = BTreeMap::new();
    for decision in decisions {
        let finding = match number(decision.name()) {
            None => {
                Some(("not named as a decision".to_owned(), "name it docs/adr/<NNNN>-<topic>.md"))
            }
            Some(number) => by_number.insert(number, decision.name()).map(|twin| {
                (format!("the number {number} is taken by {twin}"), "take the next free number")
            }),
        };
        findings.extend(
            finding.map(|(message, advice)| Finding::of_file(&decision.path, message, advice)),
        );
    }
    findings
}

fn unlisted(index: Option<&SourceFile>, decision: &SourceFile) -> Option<Finding> {
    let listed = index.is_some_and(|index| links(index).any(|(_, link)| link == decision.name()));
    (!listed && number(decision.name()).is_some()).then(|| {
        Finding::of_file(
            &decision.path,
            format!("{INDEX} does not list this decision"),
            format!("add `- [{0}]({0}): one line` there", decision.name()),
        )
    })
}

fn strangers(tree: &Tree, index: &SourceFile) -> Vec<Finding> {
    links(index)
        .filter(|(_, link)| !link.contains(['/', ':']) && !link.starts_with('#'))
        .filter(|(_, link)| number(link).is_none() || !tree.has(&format!("{FOLDER}{link}")))
        .map(|(line, link)| {
            let message = format!("the index lists `{link}`, which is no decision");
            Finding::new(INDEX, line, message, "remove it or correct its name")
        })
        .collect()
}

fn links(index: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let all = mentions(&index.text).into_iter();
    all.filter_map(|Mention { line, target }| match target {
        Target::Link(link) => Some((line, link)),
        Target::Code(_) => None,
    })
}

/// The four digits of `NNNN-topic.md`.
fn number(name: &str) -> Option<&str> {
    let (number, topic) = name.strip_suffix(".md")?.split_once('-')?;
    let shaped =
        number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()) && !topic.is_empty();
    shaped.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::finding::listing;
    use super::{Tree, index_is_complete};

    fn check(index: &str, names: &[&str]) -> String {
        let paths: Vec<String> = names.iter().map(|name| format!("docs/adr/{name}")).collect();
        let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        files.push(("docs/adr/README.md", index));
        listing(&index_is_complete(&Tree::of(&files)))
    }

    #[test]
    fn a_complete_index_is_fine() {
        assert_eq!(
            check("See [style](../STYLE.md).\n- [one](0001-one.md)\n", &["0001-one.md"]),
            ""
        );
        assert_eq!(listing(&index_is_complete(&Tree::default())), "");
    }

    #[test]
    fn a_decision_is_listed() {
        insta::assert_snapshot!(check("- [one](0001-one.md)\n", &["0001-one.md", "0002-two.md"]),
            @"docs/adr/0002-two.md:1: docs/adr/README.md does not list this decision (add `- [0002-two.md](0002-two.md): one line` there)");
    }

    #[test]
    fn nothing_else_is_listed() {
        insta::assert_snapshot!(check("- [one](0001-one.md)\n- [notes](notes.md)\n", &[]), @"
        docs/adr/README.md:1: the index lists `0001-one.md`, which is no decision (remove it or correct its name)
        docs/adr/README.md:2: the index lists `notes.md`, which is no decision (remove it or correct its name)
        ");
    }

    #[test]
    fn a_number_is_used_once() {
        insta::assert_snapshot!(check("[a](0001-a.md) [b](0001-b.md)", &["0001-a.md", "0001-b.md", "c.md"]), @"
        docs/adr/0001-b.md:1: the number 0001 is taken by 0001-a.md (take the next free number)
        docs/adr/c.md:1: not named as a decision (name it docs/adr/<NNNN>-<topic>.md)
        ");
    }
}
