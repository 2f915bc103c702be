//! Just enough Markdown: the code spans and link targets of a page, with their lines.

/// Something a page names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mention<'t> {
    /// The line, from 1.
    pub(crate) line: usize,
    /// What is named, and how.
    pub(crate) target: Target<'t>,
}

/// How a page names a thing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target<'t> {
    /// `in backticks`
    Code(&'t str),
    /// `[text](target)`
    Link(&'t str),
}

/// The mentions of a page, from top to bottom; fenced code blocks are left out.
pub(crate) fn mentions(text: &str) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    let mut in_fence = false;
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        let fence = ["```", "~~~"].iter().any(|mark| line.trim_start().starts_with(mark));
        if fence || in_fence {
            in_fence ^= fence;
            continue;
        }
        // A span may run over lines, but not over the end of its paragraph.
        in_code &= !line.trim().is_empty();
        let targets = line_targets(line, &mut in_code);
        found.extend(targets.into_iter().map(|target| Mention { line: index + 1, target }));
    }
    found
}

/// The folder of a page joined with a relative target; nothing if it leaves the tree.
pub(crate) fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn line_targets<'t>(line: &'t str, in_code: &mut bool) -> Vec<Target<'t>> {
    let mut targets: Vec<Target<'t>> = definition(line).map(Target::Link).into_iter().collect();
    for (index, segment) in line.split('`').enumerate() {
        *in_code ^= index > 0;
        if *in_code {
            targets.push(Target::Code(segment.trim()));
        } else {
            targets.extend(link_targets(segment).map(Target::Link));
        }
    }
    targets
}

/// The target of `[name]: target`.
fn definition(line: &str) -> Option<&str> {
    let (_, target) = line.strip_prefix('[')?.split_once("]: ")?;
    target.split_whitespace().next()
}

fn link_targets(segment: &str) -> impl Iterator<Item = &str> {
    segment.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        Some(target.trim_start_matches('<').trim_end_matches('>'))
    })
}

#[cfg(test)]
mod tests {
    use super::{Mention, Target, mentions, resolve};

    #[test]
    fn a_page_names_code_and_links() {
        let page =
            "See `crates/x` and [`y`](y.md#top \"Y\").\n\n```text\n`not/this`\n```\n[z]: ../z.md\n";
        let expected = [
            (1, Target::Code("crates/x")),
            (1, Target::Code("y")),
            (1, Target::Link("y.md#top")),
            (6, Target::Link("../z.md")),
        ];
        let expected = expected.map(|(line, target)| Mention { line, target });
        assert_eq!(mentions(page), expected);
    }

    #[test]
    fn a_span_over_two_lines_does_not_hide_the_rest() {
        let page = "Run `cargo\nrun` then [a](a.md).\n\nA lone ` is closed.\n\n[b](b.md)\n";
        let links: Vec<_> = mentions(page)
            .into_iter()
            .filter(|mention| matches!(mention.target, Target::Link(_)))
            .map(|mention| mention.line)
            .collect();
        assert_eq!(links, [2, 6]);
    }

    #[test]
    fn a_target_is_relative_to_its_page() {
        assert_eq!(resolve("docs/adr/README.md", "../x/./y.md").as_deref(), Some("docs/x/y.md"));
        assert_eq!(resolve("README.md", "docs/").as_deref(), Some("docs"));
        assert_eq!(resolve("docs/a.md", "../../x"), None);
    }
}
