//! Texts that people compare: events, values, and what differs between two of them.

use sequor_core::{Command, Event, Json, StoredEvent};

/// Above this many comparisons both texts are shown one after the other.
const COMPARISONS_MAX: usize = 4_000_000;

/// An event as a text: name, schema version, payload.
pub(crate) fn of_event<E: Event>(event: &E) -> String {
    let name = event.name();
    let payload = event.encode().map_or_else(|invalid| format!("({invalid})"), |it| pretty(&it));
    format!("{} v{} {payload}", name.name, name.schema_version)
}

/// A stored event, as [`of_event`] shows it.
pub(crate) fn of_stored(event: &StoredEvent) -> String {
    format!("{} v{} {}", event.name, event.schema_version, pretty(&event.payload))
}

/// What a command answers.
pub(crate) fn of_output<C: Command>(output: &C::Output) -> String {
    Json::of(output).map_or_else(|invalid| format!("({invalid})"), |it| pretty(&it))
}

/// JSON over several lines.
fn pretty(json: &Json) -> String {
    let value = json.read::<serde_json::Value>().ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    text.unwrap_or_else(|| json.as_str().to_owned())
}

/// Panics with what differs, unless nothing does.
#[track_caller]
pub(crate) fn check(what: &str, expected: &[String], actual: &[String]) {
    if expected != actual {
        let difference = difference(&expected.join("\n"), &actual.join("\n"));
        panic!("{what} differ (- expected, + actual):\n{difference}");
    }
}

/// The lines of both texts in order: `-` only expected, `+` only actual.
fn difference(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), actual.lines().collect());
    let mut lines = Vec::new();
    let (mut from, mut to) = (expected.as_slice(), actual.as_slice());
    let common =
        if from.len() * to.len() > COMPARISONS_MAX { Vec::new() } else { longest_common(from, to) };
    for line in common {
        from = take_until(from, line, "- ", &mut lines);
        to = take_until(to, line, "+ ", &mut lines);
        lines.push(format!("  {line}"));
    }
    lines.extend(from.iter().map(|line| format!("- {line}")));
    lines.extend(to.iter().map(|line| format!("+ {line}")));
    lines.join("\n")
}

/// Marks the lines before `line`, and gives those after it.
fn take_until<'t, 'a>(
    text: &'a [&'t str],
    line: &str,
    mark: &str,
    lines: &mut Vec<String>,
) -> &'a [&'t str] {
    let at = text.iter().position(|one| *one == line).unwrap_or(text.len());
    let (before, rest) = text.split_at(at);
    lines.extend(before.iter().map(|one| format!("{mark}{one}")));
    rest.split_first().map_or(rest, |(_, after)| after)
}

/// The longest sequence of lines that both texts have.
fn longest_common<'t>(from: &[&'t str], to: &[&'t str]) -> Vec<&'t str> {
    let lengths = Lengths::of(from, to);
    let (mut one, mut two, mut common) = (0, 0, Vec::new());
    while let (Some(left), Some(right)) = (from.get(one), to.get(two)) {
        if left == right {
            common.push(*left);
            (one, two) = (one + 1, two + 1);
        } else if lengths.at(one + 1, two) >= lengths.at(one, two + 1) {
            one += 1;
        } else {
            two += 1;
        }
    }
    common
}

/// How many lines two texts have in common from a line of each on.
struct Lengths(Vec<Vec<usize>>);

impl Lengths {
    fn of(from: &[&str], to: &[&str]) -> Self {
        let mut lengths = Self(vec![vec![0; to.len() + 1]; from.len() + 1]);
        for (one, left) in from.iter().enumerate().rev() {
            for (two, right) in to.iter().enumerate().rev() {
                let longest = if left == right {
                    lengths.at(one + 1, two + 1) + 1
                } else {
                    lengths.at(one + 1, two).max(lengths.at(one, two + 1))
                };
                if let Some(place) = lengths.0.get_mut(one).and_then(|row| row.get_mut(two)) {
                    *place = longest;
                }
            }
        }
        lengths
    }

    fn at(&self, one: usize, two: usize) -> usize {
        self.0.get(one).and_then(|row| row.get(two)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn what_differs_is_shown_among_what_does_not() {
        let shown = difference("a\nb\nc\nd", "a\nx\nc\nd\ne");
        assert_eq!(shown, "  a\n- b\n+ x\n  c\n  d\n+ e");
    }

    #[test]
    fn nothing_in_common_is_shown_one_after_the_other() {
        assert_eq!(difference("a", "b\nc"), "- a\n+ b\n+ c");
    }
}
