//! Who works, on which session, and with which streams in hand.

use std::sync::Arc;

use sequor_core::StreamId;
use tokio::runtime::Handle;

use super::Writers;
use super::queue::Queue;
use crate::commit::job::Job;
use crate::connection::Session;
use crate::transaction::clean;

/// A writer's place at work, with the session it works on, once it has one.
#[derive(Debug, Default)]
pub(super) struct Seat {
    pub(super) session: Option<Session>,
}

impl Seat {
    /// Takes out of the session what a projection may have left in it. The callers are answered
    /// already.
    pub(super) async fn tidy_up(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        if clean(&mut session).await.is_ok() {
            self.session = Some(session);
        }
    }
}

/// A writer at work, or a commit that waits alone, with the streams that it has in hand. Should its
/// task panic, it lets go of them, and a writer's seat is there for the next one.
#[derive(Debug)]
pub(super) struct Shift {
    writers: Arc<Writers>,
    in_hand: Vec<StreamId>,
    /// Of a writer.
    seat: Option<Seat>,
}

impl Shift {
    pub(super) fn new(writers: Arc<Writers>) -> Self {
        Self { writers, in_hand: Vec::new(), seat: Some(Seat::default()) }
    }

    pub(super) fn take_in_hand(&mut self, jobs: &[Job], queue: &mut Queue) {
        let streams = jobs.iter().flat_map(|job| job.commit.streams.iter());
        self.in_hand = streams.map(|write| write.stream.clone()).collect();
        self.in_hand.sort_unstable();
        self.in_hand.dedup();
        queue.in_hand.extend(self.in_hand.iter().cloned());
    }

    /// Hands the streams of a commit over to a shift of its own, so that what comes behind it waits;
    /// `None` where one of them was handed over before.
    pub(super) fn hand_over(&mut self, job: &Job) -> Option<Self> {
        let is_its =
            |stream: &StreamId| job.commit.streams.iter().any(|write| write.stream == *stream);
        let count = self.in_hand.iter().filter(|stream| is_its(stream)).count();
        if count < job.commit.streams.len() {
            return None;
        }
        let in_hand = self.in_hand.extract_if(.., |stream| is_its(stream)).collect();
        Some(Self { writers: Arc::clone(&self.writers), in_hand, seat: None })
    }

    pub(super) fn put_down(&mut self) {
        let mut queue = self.writers.queue();
        for stream in self.in_hand.drain(..) {
            queue.in_hand.remove(&stream);
        }
    }

    /// Ends it, with a seat whose session the next one may go on with.
    pub(super) fn end(mut self, seat: Seat) {
        self.seat = Some(seat);
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.put_down();
        let seat = self.seat.take();
        let mut queue = self.writers.queue();
        if let Some(seat) = seat {
            queue.working -= 1;
            queue.resting.push(seat);
            self.writers.rest.notify_waiters();
        }
        // Something may wait for what was in hand, or have arrived since the writer has looked.
        if queue.working > 0 || !queue.has_work() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(seat) = queue.resting.pop() {
            queue.working += 1;
            runtime.spawn(Arc::clone(&self.writers).work(seat));
        }
    }
}
