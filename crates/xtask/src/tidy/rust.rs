//! Just enough Rust: code apart from comments and strings, so that rules do not trip over words.

/// A source file, taken apart.
#[derive(Debug)]
pub(crate) struct Rust {
    code: String,
    strings: Vec<Literal>,
}

/// A string literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// The line where it starts, from 1.
    pub(crate) line: usize,
    /// What is between the quotes, escapes as written.
    pub(crate) text: String,
    /// Is it inside an item marked `#[cfg(test)]`?
    pub(crate) in_test: bool,
}

impl Rust {
    /// Takes a source file apart.
    pub(crate) fn read(text: &str) -> Self {
        let mut scanner = Scanner { rest: text, line: 1, code: String::new(), strings: Vec::new() };
        while scanner.step().is_some() {}
        let Scanner { code, mut strings, .. } = scanner;
        for (first, last) in regions(&code, "#[cfg(test)]") {
            for string in &mut strings {
                string.in_test |= (first..=last).contains(&string.line);
            }
        }
        Self { code, strings }
    }

    /// The lines, numbered from 1, with blanks where comments and strings were.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The first and last lines of the code that macros write for users: `quote! { … }`.
    pub(crate) fn quoted_lines(&self) -> Vec<(usize, usize)> {
        regions(&self.code, "quote!")
    }

    /// The string literals, from top to bottom.
    pub(crate) fn strings(&self) -> &[Literal] {
        &self.strings
    }
}

/// The identifiers and keywords of a line of code.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

/// Does the line contain `pattern`, not merely as the end of a longer name?
pub(crate) fn contains(line: &str, pattern: &str) -> bool {
    line.match_indices(pattern).any(|(start, _)| {
        let before = line.get(..start).unwrap_or_default();
        !before.ends_with(is_word)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The first and last lines of what each `mark` stands before: an item, or a macro's braces.
fn regions(code: &str, mark: &str) -> Vec<(usize, usize)> {
    code.match_indices(mark)
        .map(|(start, mark)| {
            let (before, item) = code.split_at(start);
            let after_mark = item.get(mark.len()..).unwrap_or_default();
            let first = before.matches('\n').count() + 1;
            (first, first + item_end(after_mark).matches('\n').count())
        })
        .collect()
}

/// The text up to the end of the item that it starts with.
fn item_end(code: &str) -> &str {
    let mut depth = 0_usize;
    for (index, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if (c == '}' || c == ';') && depth == 0 {
            return code.get(..index).unwrap_or(code);
        }
    }
    code
}

/// Walks over the text; what it passes as code is copied, all else is blanked.
struct Scanner<'t> {
    rest: &'t str,
    line: usize,
    code: String,
    strings: Vec<Literal>,
}

impl<'t> Scanner<'t> {
    /// Passes the next comment, literal or character; nothing at the end.
    fn step(&mut self) -> Option<()> {
        let next = self.rest.chars().next()?;
        if self.rest.starts_with("//") {
            let length = self.rest.find('\n').unwrap_or(self.rest.len());
            self.blank(length);
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment_length(self.rest));
        } else if let Some((opening, closing)) = raw_string_marks(self.rest) {
            let body = self.rest.get(opening..).unwrap_or_default();
            let length = body.find(&closing).unwrap_or(body.len());
            self.string(opening, length, closing.len());
        } else if next == '"' {
            let body = self.rest.get(1..).unwrap_or_default();
            self.string(1, escaped_length(body, '"'), 1);
        } else if let Some(length) = char_length(self.rest) {
            self.blank(length);
        } else {
            self.code.push(next);
            self.skip(next.len_utf8());
        }
        Some(())
    }

    fn string(&mut self, opening: usize, length: usize, closing: usize) {
        let line = self.line;
        self.blank(opening);
        let text = self.blank(length).to_owned();
        self.blank(closing);
        self.strings.push(Literal { line, text, in_test: false });
    }

    /// Passes `length` bytes and leaves a blank for each character but line ends.
    fn blank(&mut self, length: usize) -> &'t str {
        let passed = self.skip(length);
        let blanks = passed.chars().map(|c| if c == '\n' { c } else { ' ' });
        self.code.extend(blanks);
        passed
    }

    fn skip(&mut self, length: usize) -> &'t str {
        let (passed, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += passed.matches('\n').count();
        self.rest = rest;
        passed
    }
}

/// The length of the block comment, which may hold others, at the start of `text`.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut length = 0;
    loop {
        let rest = text.get(length..).unwrap_or_default();
        if rest.starts_with("/*") {
            depth += 1;
            length += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            length += 2;
        } else {
            length += rest.chars().next().map_or(0, char::len_utf8);
        }
        if depth == 0 || length >= text.len() {
            return length;
        }
    }
}

/// The length of the opening mark of a raw string such as `r#"`, and its closing mark.
fn raw_string_marks(text: &str) -> Option<(usize, String)> {
    let after = text.strip_prefix('r')?;
    let body = after.trim_start_matches('#');
    let hashes = after.len() - body.len();
    body.starts_with('"').then(|| (hashes + 2, format!("\"{}", "#".repeat(hashes))))
}

/// The bytes before the first `end` that no backslash precedes.
fn escaped_length(body: &str, end: char) -> usize {
    let mut escaped = false;
    for (index, c) in body.char_indices() {
        if c == end && !escaped {
            return index;
        }
        escaped = c == '\\' && !escaped;
    }
    body.len()
}

/// The length of a character literal; nothing for a lifetime.
fn char_length(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let mut chars = body.chars();
    let first = chars.next()?;
    let is_literal = first == '\\' || chars.next() == Some('\'');
    is_literal.then(|| escaped_length(body, '\'') + 2)
}

#[cfg(test)]
mod tests {
    use super::{Rust, contains};

    fn code(text: &str) -> String {
        Rust::read(text).code
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        assert_eq!(code("a // b\nc"), "a     \nc");
        assert_eq!(code("a /* b /* c\n */ */ d"), "a          \n       d");
        assert_eq!(code(r#"f("x\"y", 'z', '"', '\'', b"q")"#), "f(      ,    ,    ,     , b   )");
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(code("r#\"a\"b\"# r#fn"), "         r#fn");
    }

    #[test]
    fn an_unfinished_file_is_read_to_its_end() {
        assert_eq!(code("\"abc"), "    ");
        assert_eq!(code("/* a"), "    ");
    }

    #[test]
    fn strings_know_their_line_and_whether_they_are_tests() {
        let rust =
            Rust::read("f(\"a\");\n#[cfg(test)]\nmod tests {\n  fn g() { \"b\" }\n}\nf(r\"c\");\n");
        let strings: Vec<_> =
            rust.strings().iter().map(|s| (s.line, s.text.as_str(), s.in_test)).collect();
        assert_eq!(strings, [(1, "a", false), (4, "b", true), (6, "c", false)]);
    }

    #[test]
    fn a_pattern_is_not_the_end_of_a_longer_name() {
        assert!(contains("x.sleep(1)", "sleep(") && contains("sleep(1)", "sleep("));
        assert!(!contains("no_sleep(1)", "sleep("));
    }
}
