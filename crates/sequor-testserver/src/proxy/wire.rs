//! Just enough of PostgreSQL's protocol, version 3: where messages end, and how a connection opens.

use std::io::{self, Read, Write};

/// What a client sends that we count or follow.
pub(super) mod from_client {
    pub(crate) const QUERY: u8 = b'Q';
    pub(crate) const PARSE: u8 = b'P';
    pub(crate) const EXECUTE: u8 = b'E';
    pub(crate) const SYNC: u8 = b'S';
    pub(crate) const FUNCTION_CALL: u8 = b'F';
    pub(crate) const FLUSH: u8 = b'H';
    pub(crate) const COPY_DONE: u8 = b'c';
    pub(crate) const COPY_FAIL: u8 = b'f';
    /// Passwords of all kinds.
    pub(crate) const PASSWORD: u8 = b'p';
}

/// The server's word that it has answered and waits.
pub(super) const READY_FOR_QUERY: u8 = b'Z';

/// A tag and a length of four bytes, which counts itself.
const HEAD_BYTES: u8 = 5;

/// PostgreSQL takes no longer opening message either.
const OPENING_BYTES_MAX: usize = 10_000;

/// Follows a stream of messages across the borders of what was read at once.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    tag: u8,
    /// The length as far as it was read.
    length: u32,
    head_bytes: u8,
    /// What is missing of the body, once the head is complete.
    body_bytes: usize,
}

impl Scanner {
    /// Passes over a chunk, and tells the tag of each message that ends in it with the place where.
    pub(super) fn scan(&mut self, chunk: &[u8], mut ends: impl FnMut(u8, usize)) {
        let mut rest = chunk;
        while let Some((byte, after)) = rest.split_first() {
            if self.head_bytes < HEAD_BYTES {
                self.head(*byte);
                rest = after;
            } else {
                let passed = self.body_bytes.min(rest.len());
                self.body_bytes -= passed;
                rest = rest.get(passed..).unwrap_or_default();
            }
            if self.head_bytes == HEAD_BYTES && self.body_bytes == 0 {
                ends(self.tag, chunk.len() - rest.len());
                *self = Self::default();
            }
        }
    }

    fn head(&mut self, byte: u8) {
        if self.head_bytes == 0 {
            self.tag = byte;
        } else {
            self.length = (self.length << 8) | u32::from(byte);
        }
        self.head_bytes += 1;
        if self.head_bytes == HEAD_BYTES {
            self.body_bytes = usize::try_from(self.length.saturating_sub(4)).unwrap_or(usize::MAX);
        }
    }
}

/// The message with which a client opens a connection.
#[derive(Debug)]
pub(super) enum Opening {
    /// It wants a session. The bytes are the server's to read.
    Session(Vec<u8>),
    /// It wants another session's statement cancelled. The bytes are the server's to read.
    Cancel(Vec<u8>),
}

impl Opening {
    /// Reads it. A client that asks for encryption hears that there is none.
    pub(super) fn read(client: &mut (impl Read + Write)) -> io::Result<Self> {
        loop {
            let message = read_untagged(client)?;
            let code = message.get(4..8).unwrap_or_default();
            match <[u8; 4]>::try_from(code).map(u32::from_be_bytes) {
                Ok(80_877_102) => return Ok(Self::Cancel(message)),
                Ok(80_877_103 | 80_877_104) => client.write_all(b"N")?,
                _ => return Ok(Self::Session(message)),
            }
        }
    }
}

/// A message without a tag: its length, which counts itself, and what follows.
fn read_untagged(client: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let bytes = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if !(8..=OPENING_BYTES_MAX).contains(&bytes) {
        return Err(io::Error::other("this is not PostgreSQL's protocol"));
    }
    let mut message = length.to_vec();
    message.resize(bytes, 0);
    client.read_exact(message.get_mut(4..).unwrap_or_default())?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::Scanner;

    /// Three messages: Parse with a body, Sync without one, Query with one that looks like a head.
    const STREAM: &[u8] = b"P\0\0\0\x07abcS\0\0\0\x04Q\0\0\0\x0aS\0\0\0\x04\0";

    fn tags(chunks: &mut dyn Iterator<Item = &[u8]>) -> (Vec<u8>, Vec<usize>) {
        let (mut scanner, mut tags, mut ends) = (Scanner::default(), Vec::new(), Vec::new());
        for chunk in chunks {
            scanner.scan(chunk, |tag, end| {
                tags.push(tag);
                ends.push(end);
            });
        }
        (tags, ends)
    }

    #[test]
    fn messages_are_told_with_the_place_where_they_end() {
        assert_eq!(tags(&mut [STREAM].into_iter()), (b"PSQ".to_vec(), vec![8, 13, 24]));
    }

    #[test]
    fn messages_are_followed_across_every_border() {
        for size in 1..STREAM.len() {
            assert_eq!(tags(&mut STREAM.chunks(size)).0, b"PSQ", "in chunks of {size}");
        }
    }
}
