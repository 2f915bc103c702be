//! A child at work, seen by its parent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdout};

use sequor::CommandId;

use crate::child::{Doubts, Job};

const SIGKILL: i32 = 9;

/// What a child said was done: number → command and output.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) acknowledged: BTreeMap<u64, (CommandId, i64)>,
    pub(crate) doubts: Doubts,
}

pub(crate) struct Working {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Seen,
}

impl Working {
    pub(crate) fn start(job: &Job) -> Self {
        let mut child = job.spawn().expect("this program starts again");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines, seen: Seen::default() }
    }

    /// Lets it work until it has acknowledged so many commands more.
    pub(crate) fn wait_for(&mut self, count: u64) {
        for _ in 0..count {
            let Some(line) = self.lines.next() else {
                panic!("the child ended by itself: {:?}", self.child.wait());
            };
            self.seen.take_in(&line.expect("text"));
        }
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(mut self) -> Seen {
        self.child.kill().expect("killed");
        self.end(|status| status.signal() == Some(SIGKILL))
    }

    /// Lets it finish what it has begun.
    pub(crate) fn finish(mut self) -> Seen {
        drop(self.child.stdin.take());
        self.end(|status| status.success())
    }

    /// What was in the pipe when it ended was acknowledged too.
    fn end(mut self, as_meant: fn(&std::process::ExitStatus) -> bool) -> Seen {
        for line in self.lines.map_while(Result::ok) {
            self.seen.take_in(&line);
        }
        let status = self.child.wait().expect("gone");
        assert!(as_meant(&status), "the child ended by itself: {status}");
        self.seen
    }
}

impl Seen {
    /// Takes in a line; the last one may have been cut off by the kill.
    fn take_in(&mut self, line: &str) {
        let Some((number, done, doubts)) = parse(line) else { return };
        self.acknowledged.insert(number, done);
        self.doubts.unavailable += doubts.unavailable;
        self.doubts.unknown += doubts.unknown;
    }
}

fn parse(line: &str) -> Option<(u64, (CommandId, i64), Doubts)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [number, id, output, unavailable, unknown] = words.as_slice() else { return None };
    let doubts = Doubts { unavailable: unavailable.parse().ok()?, unknown: unknown.parse().ok()? };
    Some((number.parse().ok()?, (CommandId(id.parse().ok()?), output.parse().ok()?), doubts))
}
