//! Lines of bounded length: a file without line ends costs no more memory than any other.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1, blank lines too.
    pub(super) number: u64,
    /// Without its end, or what is wrong with it.
    pub(super) text: Result<String, &'static str>,
    /// Where the input stands after it.
    pub(super) bytes_read: u64,
}

/// Reads lines.
pub(super) struct Lines<R> {
    input: R,
    number: u64,
    bytes_read: u64,
    /// The beginning of the next line, as far as it was read.
    begun: Vec<u8>,
    is_begun: bool,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        let (begun, is_begun, is_too_long) = (Vec::new(), false, false);
        Self { input, number: 0, bytes_read: 0, begun, is_begun, is_too_long }
    }

    /// The next line; `None` at the end.
    ///
    /// # Cancellation
    /// Nothing is lost: what was read of a line is kept for the next call.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.input.fill_buf().await?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let is_over = chunk.is_empty();
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            // One more for a CR, which does not count.
            if self.begun.len() + part.len() <= LINE_BYTES_MAX + 1 {
                self.begun.extend_from_slice(part);
            } else {
                self.is_too_long = true;
            }
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            self.bytes_read += u64::try_from(taken).unwrap_or(u64::MAX);
            self.is_begun |= taken > 0;
            if end.is_some() || is_over {
                return Ok(self.is_begun.then(|| self.line()));
            }
        }
    }

    /// Finishes a line.
    fn line(&mut self) -> Line {
        self.number += 1;
        let bytes = std::mem::take(&mut self.begun);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        self.is_begun = false;
        let text = if is_too_long { Err(TOO_LONG) } else { text(bytes, self.number == 1) };
        Line { number: self.number, text, bytes_read: self.bytes_read }
    }
}

const TOO_LONG: &str = "longer than 64 KiB; write one command a line";

fn text(bytes: Vec<u8>, is_first: bool) -> Result<String, &'static str> {
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8; save the file as UTF-8")?;
    let text = text.strip_suffix('\r').unwrap_or(&text);
    if text.len() > LINE_BYTES_MAX {
        return Err(TOO_LONG);
    }
    let text = if is_first { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text };
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8]) -> Vec<(u64, Result<String, &'static str>)> {
        // A small buffer, so that lines cross its border.
        let mut lines = Lines::new(tokio::io::BufReader::with_capacity(3, input));
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push((line.number, line.text));
        }
        all
    }

    fn good(number: u64, text: &str) -> (u64, Result<String, &'static str>) {
        (number, Ok(text.to_owned()))
    }

    #[tokio::test]
    async fn lines_end_with_lf_or_crlf_and_the_last_may_end_with_nothing() {
        let wanted = [good(1, "one"), good(2, ""), good(3, "three"), good(4, "four")];
        assert_eq!(read(b"\xef\xbb\xbfone\n\r\nthree\r\nfour").await, wanted);
        assert_eq!(read(b"one\n").await, [good(1, "one")]);
        assert_eq!(read(b"").await, []);
    }

    #[tokio::test]
    async fn a_line_is_bounded_and_its_neighbours_are_unharmed() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let input = format!("a\n{longest}\r\n{longest}x\n{longest}{longest}\nb\n");
        let wanted =
            [good(1, "a"), good(2, &longest), (3, Err(TOO_LONG)), (4, Err(TOO_LONG)), good(5, "b")];
        assert!(read(input.as_bytes()).await == wanted);
    }

    #[tokio::test]
    async fn a_line_that_is_not_utf_8_says_so() {
        let lines = read(b"a\n\xff\xfe\nb").await;
        assert_eq!(lines.get(1), Some(&(2, Err("not UTF-8; save the file as UTF-8"))));
        assert_eq!(lines.len(), 3);
    }
}
