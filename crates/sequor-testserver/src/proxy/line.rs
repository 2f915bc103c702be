//! One connection through a proxy: two streams, one thread for each direction.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::counts::{Counter, Tally, count};
use super::network::{Network, Sleeper};
use super::wire::{READY_FOR_QUERY, Scanner, from_client};

/// What is read at once, for each direction of each connection.
const CHUNK_BYTES: usize = 32 * 1024;

/// A client's connection and the one to the server that belongs to it.
#[derive(Debug)]
pub(super) struct Line {
    client: TcpStream,
    server: TcpStream,
    network: Arc<Network>,
    total: Arc<Tally>,
    own: Tally,
    /// Requests that were passed on.
    requests: AtomicU64,
    /// The number of the request whose answer gets lost; 0 for none.
    lost: AtomicU64,
    /// A request was passed on, and nothing of its answer was seen yet.
    awaits: AtomicBool,
}

impl Line {
    pub(super) fn new(
        streams: (TcpStream, TcpStream),
        network: Arc<Network>,
        total: Arc<Tally>,
    ) -> Self {
        let (client, server) = streams;
        let line = Self {
            client,
            server,
            network,
            total,
            own: Tally::default(),
            requests: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            awaits: AtomicBool::new(true),
        };
        line.count(|tally| &tally.connections);
        line
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.own
    }

    /// Ends the connection for both sides, at once.
    pub(super) fn cut(&self) {
        for stream in [&self.client, &self.server] {
            // It may have ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Passes on what the client says, until one side ends.
    pub(super) fn pass_requests(&self) -> io::Result<()> {
        let mut scanner = Scanner::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = (&self.client).read(&mut chunk)?;
            let read = chunk.get(..read).unwrap_or_default();
            if read.is_empty() {
                return Ok(());
            }
            // Before it is passed on, so that its answer finds everything noted.
            scanner.scan(read, |tag, _| self.note(tag));
            self.network.pass();
            (&self.server).write_all(read)?;
        }
    }

    /// Passes on what the server says, until one side ends or an answer gets lost.
    pub(super) fn pass_answers(&self) -> io::Result<()> {
        let mut answers = Answers::default();
        let mut sleeper = Sleeper::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = (&self.server).read(&mut chunk)?;
            let read = chunk.get(..read).unwrap_or_default();
            if read.is_empty() {
                return Ok(());
            }
            if self.awaits.swap(false, Ordering::AcqRel) {
                if answers.is_open {
                    self.count(|tally| &tally.waits);
                }
                sleeper.sleep(self.network.delay());
            }
            let passed = answers.follow(read, self.lost.load(Ordering::Acquire));
            for _ in 0..passed.answers {
                self.count(|tally| &tally.round_trips);
            }
            self.network.pass();
            (&self.client).write_all(read.get(..passed.bytes).unwrap_or(read))?;
            if passed.is_last {
                return Ok(());
            }
        }
    }

    /// Counts a message of the client.
    fn note(&self, tag: u8) {
        match tag {
            from_client::QUERY => self.count(|tally| &tally.queries),
            from_client::PARSE => self.count(|tally| &tally.parses),
            from_client::EXECUTE => self.count(|tally| &tally.executes),
            _ => {}
        }
        match tag {
            from_client::QUERY | from_client::SYNC | from_client::FUNCTION_CALL => {
                let number = self.requests.fetch_add(1, Ordering::AcqRel) + 1;
                if self.network.loses_answer() {
                    self.lost.store(number, Ordering::Release);
                }
            }
            from_client::FLUSH
            | from_client::COPY_DONE
            | from_client::COPY_FAIL
            | from_client::PASSWORD => {}
            _ => return,
        }
        self.awaits.store(true, Ordering::Release);
    }

    fn count(&self, counter: Counter) {
        count([&self.total, &self.own], counter);
    }
}

/// The server's side of a connection, as far as it was read.
#[derive(Debug, Default)]
struct Answers {
    scanner: Scanner,
    /// The server has opened the session.
    is_open: bool,
    /// Answers that were read to their end, lost ones included.
    number: u64,
}

/// What the client gets of a chunk.
#[derive(Debug)]
struct Passed {
    bytes: usize,
    /// Answers that end in these bytes.
    answers: u64,
    /// The answer after which the connection ends was read.
    is_last: bool,
}

impl Answers {
    /// Follows a chunk up to the start of the answer to request number `lost`; 0 is none.
    fn follow(&mut self, chunk: &[u8], lost: u64) -> Passed {
        let Self { scanner, is_open, number } = self;
        let is_withheld = |number: u64| number + 1 == lost;
        let bytes = if is_withheld(*number) { 0 } else { chunk.len() };
        let mut passed = Passed { bytes, answers: 0, is_last: false };
        scanner.scan(chunk, |tag, end| {
            if tag != READY_FOR_QUERY {
                return;
            }
            if !*is_open {
                *is_open = true;
                return;
            }
            *number += 1;
            if *number == lost {
                passed.is_last = true;
            } else if !passed.is_last {
                passed.answers += 1;
                if is_withheld(*number) {
                    passed.bytes = end;
                }
            }
        });
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::Answers;

    const READY: &[u8] = b"Z\0\0\0\x05I";

    #[test]
    fn only_the_lost_answer_is_withheld() {
        let mut answers = Answers { is_open: true, ..Answers::default() };
        let two_and_a_half = [READY, READY, b"T\0\0"].concat();
        let passed = answers.follow(&two_and_a_half, 3);
        assert_eq!((passed.bytes, passed.answers, passed.is_last), (12, 2, false));
        let passed = answers.follow(&[b"\0\x04".as_slice(), READY, READY].concat(), 3);
        assert_eq!((passed.bytes, passed.answers, passed.is_last), (0, 0, true));
    }

    #[test]
    fn the_opening_is_no_answer() {
        let mut answers = Answers::default();
        let passed = answers.follow(READY, 1);
        assert_eq!((passed.answers, passed.is_last), (0, false));
    }
}
